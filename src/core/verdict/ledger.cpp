#include "berth/verdict/ledger.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/request/request.h"

namespace berth {

Result<Expect> expect_from_text(std::string_view text) {
  if (const auto expect = from_word<Expect>(text)) return *expect;
  return fail(ErrorCode::usage, "must be \"none\", \"limits\" or \"runs\"");
}

namespace {

constexpr std::size_t kIdDigits = 16;
/// So many digits of an id people are shown at least.
constexpr unsigned kShortestName = 6;

}  // namespace

std::string to_text(TicketId id) {
  return fmt::format("{:016x}", id.value);
}

std::optional<std::uint32_t> slurm_job_of(std::string_view text) {
  const auto number = number_from_text<std::uint32_t>(text);
  return number && *number > 0 ? number : std::nullopt;
}

std::optional<TicketId> ticket_id_from_text(std::string_view text) {
  const bool shaped =
      text.size() == kIdDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!shaped) return std::nullopt;
  TicketId id;
  std::from_chars(text.data(), text.data() + text.size(), id.value, 16);
  return id;
}

bool read_value(std::string_view text, TicketId& id) {
  const auto known = ticket_id_from_text(text);
  id = known.value_or(id);
  return known.has_value();
}

Ticket ticket_for(const Request& request) {
  Ticket ticket;
  ticket.count = request.count;
  ticket.shared = request.shared;
  ticket.promise_bytes = request.promise_bytes;
  ticket.time_s = request.time_s;
  ticket.yield_s = request.yield_s;
  return ticket;
}

std::size_t count_waiting(const Ledger& ledger) {
  auto waiting =
      static_cast<std::size_t>(std::ranges::count(ledger.tickets, TicketPhase::waiting, &Ticket::phase));
  for (const Unlisted& rest : ledger.unlisted) waiting += rest.waiting;
  return waiting;
}

std::vector<const Ticket*> leases_on(const Ledger& ledger, std::string_view uuid) {
  std::vector<const Ticket*> found;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted &&
        std::ranges::find(ticket.devices, uuid) != ticket.devices.end())
      found.push_back(&ticket);
  }
  return found;
}

LeasesByDevice::LeasesByDevice(const Ledger& ledger) {
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase != TicketPhase::granted) continue;
    for (const std::string& uuid : ticket.devices) {
      std::vector<const Ticket*>& leases = leases_[uuid];
      if (leases.empty() || leases.back() != &ticket) leases.push_back(&ticket);
    }
  }
}

const std::vector<const Ticket*>& LeasesByDevice::on(std::string_view uuid) const {
  static const std::vector<const Ticket*> kNone;
  const auto found = leases_.find(uuid);
  return found == leases_.end() ? kNone : found->second;
}

const Ticket* find_ticket(const Ledger& ledger, TicketId id, std::optional<TicketPhase> phase) {
  const auto found = std::ranges::find_if(ledger.tickets, [&](const Ticket& ticket) {
    return ticket.id == id && (!phase || ticket.phase == *phase);
  });
  return found == ledger.tickets.end() ? nullptr : &*found;
}

Result<const Ticket*> ticket_named(const Ledger& ledger, std::string_view text, TicketPhase wanted) {
  const bool shaped = !text.empty() && text.size() <= kIdDigits &&
                      text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!shaped)
    return fail(ErrorCode::usage,
                "'{}' is not the id of a lease; `berth list -l` shows the ids, such as 29d000",
                printable(text));
  // People name their jobs by such numbers. One that is over must not mean somebody's lease whose
  // id ends in it by chance.
  const bool is_number =
      text.size() < kShortestName && text.find_first_not_of("0123456789") == std::string_view::npos;
  std::vector<const Ticket*> named;
  for (const Ticket& ticket : ledger.tickets) {
    if (!is_number && to_text(ticket.id).ends_with(text)) named.push_back(&ticket);
  }
  const auto is_other = [wanted](const Ticket* ticket) { return ticket->phase != wanted; };
  if (!std::ranges::all_of(named, is_other)) std::erase_if(named, is_other);
  if (named.empty())
    return fail(ErrorCode::failure, "no live lease has the id {}; `berth list -l` shows the live leases",
                text);
  if (named.size() == 1) return named.front();
  std::string ids;
  for (const Ticket* ticket : named) ids += (ids.empty() ? "" : ", ") + short_name(ledger, ticket->id);
  return fail(ErrorCode::usage, "{} could be {}; give more digits", text, ids);
}

std::optional<std::int64_t> said_end(const Ticket& ticket) {
  if (!ticket.time_s || !ticket.granted_boot_s) return std::nullopt;
  return *ticket.granted_boot_s + *ticket.time_s;
}

std::int64_t joined_at(const Ticket& ticket) {
  constexpr std::uint64_t kNanosecondsOfMillisecond = 1'000'000;
  return static_cast<std::int64_t>(ticket.id.value / kNanosecondsOfMillisecond);
}

std::int64_t granted_at(const Ticket& lease, std::int64_t unsaid_ms) {
  constexpr std::int64_t kMillisecondsOfSecond = 1000;
  if (!lease.granted_boot_s) return joined_at(lease);
  return *lease.granted_boot_s * kMillisecondsOfSecond + lease.granted_boot_ms.value_or(unsaid_ms);
}

std::optional<std::int64_t> said_end_at_s(const Ticket& ticket, std::int64_t booted_at_s) {
  if (ticket.told_end_s) return ticket.told_end_s;
  const auto end = said_end(ticket);
  if (end && booted_at_s != 0) return booted_at_s + *end;
  if (ticket.phase != TicketPhase::granted || !ticket.time_s) return std::nullopt;
  return ticket.since_s + *ticket.time_s;
}

bool comes_before(const Ticket& a, const Ticket& b) {
  return std::pair(a.yield_s.has_value(), a.id) < std::pair(b.yield_s.has_value(), b.id);
}

bool is_candidate(const Ticket& ticket, std::string_view uuid) {
  return std::ranges::any_of(ticket.candidates,
                             [&](const std::string& one) { return one == kEveryDevice || one == uuid; });
}

bool are_rivals(const Ticket& a, const Ticket& b) {
  return std::ranges::any_of(a.candidates, [&](const std::string& one) {
    return one == kEveryDevice ? !b.candidates.empty() : is_candidate(b, one);
  });
}

namespace {

/// `of_parent`: the leases of the GPU that a MIG instance is a part of.
std::vector<const Ticket*> joined(std::vector<const Ticket*> leases,
                                  const std::vector<const Ticket*>& of_parent) {
  for (const Ticket* lease : of_parent) {
    if (std::find(leases.begin(), leases.end(), lease) == leases.end()) leases.push_back(lease);
  }
  return leases;
}

}  // namespace

std::vector<const Ticket*> leases_holding(const Device& device, const Ledger& ledger) {
  std::vector<const Ticket*> leases = leases_on(ledger, device.uuid);
  if (!device.mig) return leases;
  return joined(std::move(leases), leases_on(ledger, device.mig->parent_uuid));
}

std::vector<const Ticket*> leases_holding(const Device& device, const LeasesByDevice& leases) {
  if (!device.mig) return leases.on(device.uuid);
  return joined(leases.on(device.uuid), leases.on(device.mig->parent_uuid));
}

namespace {

constexpr unsigned kDigits = 16;
constexpr unsigned kBits = 4;

// Ids with the same last digits stand side by side then.
std::uint64_t turned(TicketId id) {
  std::uint64_t turned = 0;
  for (unsigned digit = 0; digit < kDigits; ++digit)
    turned = turned << kBits | (id.value >> (kBits * digit) & 0xfU);
  return turned;
}

unsigned in_common(std::uint64_t a, std::uint64_t b) {
  return static_cast<unsigned>(std::countl_zero(a ^ b)) / kBits;
}

}  // namespace

ShortNames::ShortNames(const Ledger& ledger) {
  ids_.reserve(ledger.tickets.size());
  for (const Ticket& ticket : ledger.tickets) ids_.push_back(turned(ticket.id));
  std::ranges::sort(ids_);
}

std::string ShortNames::of(TicketId id) const {
  const std::uint64_t mine = turned(id);
  const auto [first, after] = std::ranges::equal_range(ids_, mine);
  unsigned digits = kShortestName;
  if (first != ids_.begin()) digits = std::max(digits, in_common(mine, *std::prev(first)) + 1);
  if (after != ids_.end()) digits = std::max(digits, in_common(mine, *after) + 1);
  return to_text(id).substr(kDigits - digits);
}

std::string short_name(const Ledger& ledger, TicketId id) {
  return ShortNames(ledger).of(id);
}

namespace {

constexpr std::size_t kLongestProgram = 40;

bool is_script(std::string_view word) {
  constexpr std::array<std::string_view, 8> kEnds{".py", ".sh", ".pl", ".rb", ".R", ".jl", ".lua", ".js"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return word.ends_with(end); });
}

bool is_interpreter(std::string_view program) {
  program.remove_prefix(std::min(program.rfind('/') + 1, program.size()));
  constexpr std::array<std::string_view, 10> kNames{"python", "pypy", "bash", "sh",   "dash",
                                                    "zsh",    "perl", "ruby", "node", "java"};
  return std::ranges::any_of(kNames, [&](std::string_view name) {
    return program.starts_with(name) &&
           program.substr(name.size()).find_first_not_of("0123456789.") == std::string_view::npos;
  });
}

std::string without_digits(std::string_view text) {
  std::string rest;
  std::ranges::copy_if(text, std::back_inserter(rest), [](char c) { return c < '0' || c > '9'; });
  return rest;
}

/// "python", "train.py": what of a command says which program it is.
std::string program_and_script(std::string_view command) {
  const std::string_view program = command.substr(0, command.find(' '));
  std::string found(program);
  const bool interprets = is_interpreter(program);
  for (std::size_t at = program.size(); at < command.size();) {
    const std::size_t begin = command.find_first_not_of(' ', at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(command.find(' ', begin), command.size());
    const std::string_view word = command.substr(begin, end - begin);
    const std::string_view rest = trimmed(command.substr(end));
    at = end;
    if (interprets && (word == "-c" || word == "-e")) {
      const bool is_plain = rest.find_first_of(";&|<>$`\"'()[]{}\n") == std::string_view::npos;
      return found + '\0' + (is_plain ? program_and_script(rest) : without_digits(rest));
    }
    if (interprets && (word == "-m" || word == "-jar"))
      return found + '\0' + std::string(rest.substr(0, rest.find(' ')));
    if (is_script(word) || (interprets && !word.starts_with('-'))) return found + '\0' + std::string(word);
  }
  return found;
}

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

/// "--lr=1e-3" and "--lr=0.1" are "--lr=#", "--data=/mnt/a" and "--data=../b" are "--data=/".
std::string without_values(std::string_view word) {
  const std::size_t value = word.find('=') + 1;
  if (word.find('/', value) != std::string_view::npos) return std::string(word.substr(0, value)) + '/';
  std::string shape;
  for (std::size_t at = 0; at < word.size();) {
    if (!is_digit(word[at])) {
      shape += word[at++];
      continue;
    }
    shape += '#';
    at = std::min(word.find_first_not_of("0123456789.eE+-", at), word.size());
  }
  return shape;
}

}  // namespace

std::uint64_t fingerprint_of(std::uint32_t uid, std::string_view command) {
  return fnv_hash(std::to_string(uid) + '\0' + program_and_script(trimmed(command)));
}

std::uint64_t shape_of(std::uint32_t uid, std::string_view command) {
  std::string text = std::to_string(uid) + '\0' + program_and_script(trimmed(command));
  for (const std::string_view word : parts_at(trimmed(command), ' ')) text += '\0' + without_values(word);
  return fnv_hash(text);
}

std::string told_program(std::string_view command) {
  const std::string found = program_and_script(trimmed(command));
  std::string_view word = std::string_view(found).substr(found.rfind('\0') + 1);
  // A word with a space is a script that a shell was given, and no path.
  if (word.find(' ') == std::string_view::npos) word.remove_prefix(word.rfind('/') + 1);
  return std::string(shortened(trimmed(word), kLongestProgram));
}

namespace {

constexpr std::string_view kHead = "berth-outcomes 1 ";
constexpr std::size_t kFields = 5;
constexpr std::size_t kMostDigits = 16;
// As many as the longest passing comes from, and two more.
constexpr std::size_t kKeptOfDevice = 12;
constexpr std::size_t kKeptBytes = kMostOutcomeBytes / 2;

std::optional<std::uint64_t> fingerprint_from(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != kMostDigits)
    return std::nullopt;
  return number;
}

// Each request reads all lines of its user: nothing is allocated here.
std::optional<std::array<std::string_view, kFields>> fields_of(std::string_view line) {
  std::array<std::string_view, kFields> fields;
  for (std::size_t i = 0; i + 1 < kFields; ++i) {
    const std::size_t end = line.find(' ');
    if (end == std::string_view::npos) return std::nullopt;
    fields[i] = line.substr(0, end);
    line.remove_prefix(end + 1);
  }
  fields.back() = line;
  return fields;
}

/// Whether the word stands where this letter of it does: one that is rare in the text, and quickly
/// found.
bool stands_at(std::string_view text, std::size_t letter_at, std::string_view word, char letter) {
  const std::size_t before = word.find(letter);
  return letter_at >= before && text.substr(letter_at - before).starts_with(word);
}

std::optional<PastRun> decode_line(std::string_view line) {
  const auto found = fields_of(line);
  if (!found || !found->back().ends_with(';')) return std::nullopt;
  const auto& fields = *found;
  const auto fingerprint = fingerprint_from(fields[0]);
  const auto begun = number_from_text<Moment>(fields[1]);
  const auto lasted = number_from_text<Moment>(fields[2]);
  Ending ending{};
  if (!fingerprint || !begun || !lasted || !read_value(fields[3], ending)) return std::nullopt;
  PastRun outcome{*fingerprint, *begun, *lasted, ending, {}};
  for (const std::string_view uuid : parts_at(fields[4].substr(0, fields[4].size() - 1), ',')) {
    if (uuid.empty()) return std::nullopt;
    outcome.devices.emplace_back(uuid);
  }
  return outcome;
}

}  // namespace

std::string encode_outcome(const PastRun& outcome) {
  return fmt::format("{:016x} {} {} {} {};\n", outcome.fingerprint, outcome.begun, outcome.lasted,
                     to_text(outcome.ending), fmt::join(outcome.devices, ","));
}

bool is_of_boot(std::string_view text, std::string_view boot) {
  const std::size_t head = text.find('\n');
  return head != std::string_view::npos && text.substr(0, head) == fmt::format("{}{}", kHead, boot);
}

std::vector<PastRun> decode_outcomes(std::string_view text, std::string_view boot) {
  std::vector<PastRun> outcomes;
  if (!is_of_boot(text, boot)) return outcomes;
  text = text.substr(text.find('\n') + 1, kMostOutcomeBytes);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    if (auto outcome = decode_line(text.substr(0, end))) outcomes.push_back(*std::move(outcome));
    text.remove_prefix(end + 1);
  }
  return outcomes;
}

std::string encode_outcomes(const std::vector<PastRun>& outcomes, std::string_view boot) {
  std::vector<std::string> lines;
  std::map<std::string_view, std::size_t> of_device;
  std::size_t bytes = 0;
  for (const PastRun& outcome : std::views::reverse(outcomes)) {
    const bool is_wanted = std::ranges::any_of(
        outcome.devices, [&](const std::string& uuid) { return of_device[uuid] < kKeptOfDevice; });
    if (!is_wanted) continue;
    for (const std::string& uuid : outcome.devices) ++of_device[uuid];
    lines.push_back(encode_outcome(outcome));
    bytes += lines.back().size();
    if (bytes <= kKeptBytes) continue;
    lines.pop_back();
    break;
  }
  std::string text = fmt::format("{}{}\n", kHead, boot);
  for (const std::string& line : std::views::reverse(lines)) text += line;
  return text;
}

bool may_blame(std::string_view text, std::size_t bad_runs) {
  for (std::size_t at = text.find('n'); at != std::string_view::npos; at = text.find('n', at + 1)) {
    if (stands_at(text, at, " included ", 'n') || stands_at(text, at, " no_cuda ", 'n')) return true;
  }
  std::size_t bad = 0;
  for (std::size_t at = text.find('y'); at != std::string_view::npos; at = text.find('y', at + 1))
    bad += stands_at(text, at, " badly ", 'y') ? 1 : 0;
  return bad >= bad_runs;
}

}  // namespace berth
