// Long, since the rows, the columns and the sentences of one table stand together.
#include "berth/view/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ranges>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/device/device_readings.h"
#include "berth/verdict/verdict.h"
#include "berth/view/text.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
namespace {

double gib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(1ULL << 30U);
}

std::string cell_text(const DeviceReading& row, const Device& device) {
  const Reading<double> value = number_of(row, device);
  if (!value) return std::string(text_of(row, device).value_or(kUnknown));
  const std::string_view unit = row.kind == FieldKind::percent     ? "%"
                                : row.kind == FieldKind::celsius   ? "C"
                                : row.kind == FieldKind::watts     ? "W"
                                : row.kind == FieldKind::megahertz ? "MHz"
                                                                   : "";
  // Half a watt is one.
  return row.kind == FieldKind::bytes ? bytes_for_people(static_cast<std::uint64_t>(*value))
                                      : fmt::format("{}{}", std::floor(*value + 0.5), unit);
}

std::string memory_text(const Memory& memory) {
  if (!memory.total_bytes) return std::string(kUnknown);
  return fmt::format(
      "{:>5} / {:>5.1f}",
      memory.used_bytes ? fmt::format("{:.1f}", gib(*memory.used_bytes)) : std::string(kUnknown),
      gib(*memory.total_bytes));
}

/// Without what other rows say too: the maker, and of a MIG instance the model, which stands in its
/// GPU's row.
std::string_view model(const Device& device) {
  std::string_view name = without_maker(device.name);
  const std::size_t instance = device.mig ? name.find("MIG ") : std::string_view::npos;
  return instance == std::string_view::npos ? name : name.substr(instance);
}

std::string user_of(const Process& process) {
  if (!process.user.empty()) return printable(process.user);
  return process.uid ? fmt::format("uid {}", *process.uid) : std::string("an unknown user");
}

/// The user of a process that computes there without a lease for it; "" when there is none.
std::string outsider_on(const Listing& listing, const Device& device) {
  const auto leases = leases_holding(device, listing.ledger);
  for (const Process& process : device.processes.value_or(std::vector<Process>{})) {
    if (is_outsider(process, leases, listing.facts)) return user_of(process);
  }
  return "";
}

/// ", idle", ", idle since 14:02", ", used by bob": what becomes of a leased device.
std::string use_of(const Listing& listing, const Device& device, const Style& style) {
  const std::vector<const Ticket*> holding = leases_holding(device, listing.ledger);
  const Reading<bool> idle = is_idle(device, holding, listing.facts);
  if (!idle) return "";
  const std::string outsider = outsider_on(listing, device);
  if (!outsider.empty()) return fmt::format(", {}used by {}", *idle ? "" : "also ", outsider);
  if (!*idle) return "";
  if (std::ranges::all_of(holding, [&](const Ticket* lease) { return listing.stopped.contains(lease->id); }))
    return ", stopped";
  const Reading<std::int64_t> since_s = listing.idle.since(device, holding);
  return since_s ? ", idle since " + clock_time(*since_s, style) : ", idle";
}

/// "; still leased by ada, bob": what the words about another reason would hide.
std::string still_leased(const Listing& listing, const Device& device) {
  std::vector<std::string> users;
  for (const Ticket* lease : leases_holding(device, listing.ledger))
    if (std::ranges::find(users, printable(lease->user)) == users.end())
      users.push_back(printable(lease->user));
  return users.empty() ? "" : fmt::format("; still leased by {}", fmt::join(users, ", "));
}

bool is_of_hardware(const Device& device) {
  const Xid* xid = xid_of(device.health.last_xid.value_or(0));
  return xid != nullptr && xid->kind == XidKind::hardware;
}

bool is_own(const Listing& listing, const Device& device) {
  return listing.own && std::ranges::any_of(leases_holding(device, listing.ledger),
                                            [&](const Ticket* lease) { return lease->id == *listing.own; });
}

ShortState state_of(const Listing& listing, const Device& device, const Verdict* verdict,
                    const Style& style) {
  if (verdict != nullptr) {
    ShortState state = short_state(*verdict, device, style);
    if (verdict->failed == Clause::not_leased) {
      const std::string use = use_of(listing, device, style);
      state = {state.text + use, use.empty() ? Tone::busy : Tone::waiting};
    }
    if (verdict->failed == Clause::not_excluded) state.text += still_leased(listing, device);
    const std::string blemish = blemish_of(device);
    if (is_of_hardware(device)) state.text += fmt::format(", Xid {}", *device.health.last_xid);
    if (!blemish.empty() && verdict->failed != Clause::healthy) state.text += ", " + blemish;
    if (is_own(listing, device)) state = {"this lease: " + state.text, Tone::strong};
    return state;
  }
  if (device.mig_enabled.value_or(false)) {
    const auto instances = std::ranges::count_if(listing.facts.snapshot.devices, [&](const Device& other) {
      return other.mig && other.mig->parent_uuid == device.uuid;
    });
    return {fmt::format("split in {}", instances), Tone::faint};
  }
  return {"unknown", Tone::bad};
}

/// The facts from which a cell is made.
struct Shown {
  const Listing& listing;
  const Device& device;
  const Verdict* verdict;
  const Style& style;
};
/// A column and what stands in it.
struct DeviceColumn {
  Column column;
  std::function<Cell(const Shown&)> cell;
};

/// "21:43, yields", "yields", "ending": when the lease ends, as far as it is known.
std::string end_of(const Listing& listing, const Ticket& lease, const Style& style) {
  if (lease.ending) return "ending";
  const auto end_s = said_end_at_s(lease, listing.facts.booted_at_s);
  if (!end_s) return std::string(lease.yield_s ? "yields" : kUnknown);
  return clock_time(*end_s, style) + (lease.yield_s ? ", yields" : "");
}

/// When the last of the device's leases ends.
std::string until_of(const Shown& it) {
  const std::vector<const Ticket*> holding = leases_holding(it.device, it.listing.ledger);
  if (holding.empty()) return "";
  if (holding.size() == 1) return end_of(it.listing, *holding.front(), it.style);
  std::int64_t last_s = 0;
  for (const Ticket* lease : holding) {
    const auto end_s = said_end_at_s(*lease, it.listing.facts.booted_at_s);
    if (!end_s) return std::string(kUnknown);
    last_s = std::max(last_s, *end_s);
  }
  return clock_time(last_s, it.style);
}

/// The commands of the device's leases, or else of what computes there without one.
std::string commands_on(const Shown& it) {
  std::vector<std::string> commands;
  for (const Ticket* lease : leases_holding(it.device, it.listing.ledger))
    commands.push_back(noted_command(*lease));
  if (commands.empty()) {
    for (const Process& process : it.device.processes.value_or(std::vector<Process>{}))
      if (is_outsider(process, {}, it.listing.facts)) commands.push_back(short_command(process.command));
  }
  constexpr std::size_t kMostCommands = 3;
  const std::size_t more = commands.size() - std::min(commands.size(), kMostCommands);
  commands.resize(commands.size() - more);
  return fmt::format("{}{}", fmt::join(commands, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

/// Whether anybody has one of the devices.
bool is_in_use(const Listing& listing) {
  return std::ranges::any_of(listing.facts.snapshot.devices, [&](const Device& device) {
    return !leases_holding(device, listing.ledger).empty() || !outsider_on(listing, device).empty();
  });
}

/// `with_work`: columns for who has the devices until when, and for what, instead of the number of
/// processes.
std::vector<DeviceColumn> device_cells(bool with_work) {
  std::vector<DeviceColumn> columns{
      {{"GPU", Align::right}, [](const Shown& it) -> Cell { return {label(it.device)}; }},
      {{"NAME", Align::left, with_work ? 8U : 12U, 6},
       [](const Shown& it) -> Cell {
         return {printable(it.device.name.empty() ? kUnknown : model(it.device))};
       }},
      {{"MEMORY (GiB)", Align::right, 0, 5}, [](const Shown& it) -> Cell {
         const bool answers = it.device.state == DeviceState::ok;
         return {answers ? memory_text(it.device.memory) : std::string(kUnknown)};
       }}};
  for (const DeviceReading& row : device_readings()) {
    if (row.column.title.empty()) continue;
    columns.push_back({{row.column.title, Align::right, 0, row.column.drop_order},
                       [&row](const Shown& it) -> Cell { return {cell_text(row, it.device)}; }});
  }
  if (with_work) {
    columns.push_back({{"UNTIL", Align::right}, [](const Shown& it) -> Cell { return {until_of(it)}; }});
  } else {
    columns.push_back({{"PROCS", Align::right, 0, 4}, [](const Shown& it) -> Cell {
                         const auto& processes = it.device.processes;
                         return {processes ? fmt::format("{}", processes->size()) : std::string(kUnknown)};
                       }});
  }
  columns.push_back({{"STATE", Align::left, with_work ? 24U : 32U}, [](const Shown& it) -> Cell {
                       const ShortState state = state_of(it.listing, it.device, it.verdict, it.style);
                       return {state.text, state.tone};
                     }});
  if (with_work) {
    columns.push_back(
        {{"COMMAND", Align::left, 12, 4}, [](const Shown& it) -> Cell { return {commands_on(it)}; }});
  }
  return columns;
}

Row row_of(const std::vector<DeviceColumn>& cells, const Listing& listing, const Device& device,
           const Style& style) {
  const Verdict* verdict = verdict_on(device, listing.verdicts, listing.facts.snapshot);
  Row row;
  for (const DeviceColumn& each : cells) row.push_back(each.cell({listing, device, verdict, style}));
  return row;
}

std::string device_table(const Listing& listing, bool with_work, const Style& style) {
  const std::vector<DeviceColumn> cells = device_cells(with_work);
  std::vector<Column> columns;
  for (const DeviceColumn& each : cells) columns.push_back(each.column);
  std::vector<Row> rows;
  for (const Device& device : listing.facts.snapshot.devices)
    rows.push_back(row_of(cells, listing, device, style));
  return table(columns, std::move(rows), style);
}

/// Which lease a process on a device belongs to, or why none.
Cell place_of(const Listing& listing, const Device& device, const Process& process) {
  if (process.kind == ProcessKind::graphics) return {"graphics"};
  if (is_of_mps(process)) return {"MPS"};
  const auto known = listing.facts.process_leases.find(process.pid);
  if (known == listing.facts.process_leases.end())
    return process.ending.value_or(false) ? Cell{"ending"} : Cell{"outsider", Tone::foreign};
  const Ticket* here = lease_of(process, leases_holding(device, listing.ledger), listing.facts);
  if (here == nullptr) return {"stray " + short_name(listing.ledger, known->second), Tone::bad};
  return {fmt::format("lease {}{}", short_name(listing.ledger, here->id),
                      listing.assumed.contains(process.pid) ? "*" : "")};
}

std::string footnote(const Listing& listing, const Style& style) {
  if (listing.assumed.empty()) return "";
  return wrapped(
             "* assumed: what ties it to the lease may not be read; its user is the lease's, and the GPU is",
             style.width, 0) +
         "\n";
}

std::string process_table(const Listing& listing, const Style& style) {
  std::vector<Row> rows;
  for (const Device& device : listing.facts.snapshot.devices) {
    if (!device.processes) continue;
    for (const Process& process : *device.processes)
      rows.push_back(process_row(listing, device, process, style));
  }
  return rows.empty() ? "" : "\n" + table(process_columns(), rows, style) + footnote(listing, style);
}

std::string devices_of_lease(const Ticket& lease, const Snapshot& snapshot) {
  const std::string labels = device_labels(lease.devices, snapshot);
  return lease.shared ? fmt::format("{} ({})", labels, bytes_for_people(lease.promise_bytes)) : labels;
}

constexpr std::ptrdiff_t kAfterAge = 4;

/// "lease a1b2c3 outlives its command: 712 (tmux) holds it; berth release a1b2c3 ends it", a line
/// each.
std::string left_behind_lines(const Listing& listing, const Style& style) {
  std::string lines;
  for (const auto& [id, holders] : listing.left_behind) {
    std::string names;
    for (const Holder& holder : holders)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", holder.pid, short_command(holder.command));
    const std::string name = short_name(listing.ledger, id);
    lines +=
        wrapped(fmt::format(
                    "the command of lease {0} has ended, and {1} still {2} it; berth release {0} ends both",
                    name, names, holders.size() == 1 ? "holds" : "hold"),
                style.width, 0) +
        "\n";
  }
  return lines;
}

std::string left_behind_in_brief(const Listing& listing, const Style& style) {
  if (listing.left_behind.size() <= 1) return left_behind_lines(listing, style);
  return wrapped(fmt::format("the commands of {} have ended, and processes still hold them: berth list -l",
                             counted(listing.left_behind.size(), "lease")),
                 style.width, 0) +
         "\n";
}

std::string lease_table(const Listing& listing, const Ledger& ledger, const Style& style) {
  const bool some_end = has_some_end(ledger);
  const ShortNames names(ledger);
  std::vector<Row> rows;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted)
      rows.push_back(lease_row(listing, names, ticket, some_end, style));
  }
  if (rows.empty()) return "";
  return "\n" + table(lease_columns(some_end), std::move(rows), style) +
         unlisted_lines(ledger.unlisted, &Unlisted::leases, "lease", style);
}

/// "your request 3f9a (train.py): no. 2 in line, about 22:10", a line for each of the first two.
std::string own_requests(const Listing& listing, const Style& style) {
  constexpr std::size_t kMostOwn = 2;
  std::string lines;
  for (const Standing& each : listing.own_waiting | std::views::take(kMostOwn)) {
    const std::string start =
        each.starts_at_s ? ", starts about " + clock_time(*each.starts_at_s, style) : std::string();
    lines += wrapped(fmt::format("your request {} ({}) is no. {} in line{}",
                                 short_name(listing.ledger, each.ticket.id), noted_command(each.ticket),
                                 each.position, start),
                     style.width, 0) +
             "\n";
  }
  if (listing.own_waiting.size() > kMostOwn)
    lines += fmt::format("and {} of yours: berth queue\n",
                         counted(listing.own_waiting.size() - kMostOwn, "more request"));
  return lines;
}

/// The table of all leases, and the table of those inside the lease in which the asking process
/// runs.
std::string lease_tables(const Listing& listing, const Style& style) {
  const std::string inside = lease_table(listing, listing.inside, style);
  return lease_table(listing, listing.ledger, style) + left_behind_lines(listing, style) +
         (inside.empty() ? "" : "\nInside this lease:" + inside);
}

}  // namespace

ReadingSet readings_for_table() {
  ReadingSet set = ReadingKind::health | ReadingKind::xid | ReadingKind::name | ReadingKind::memory |
                   ReadingKind::processes | ReadingKind::process_details | ReadingKind::driver;
  for (const DeviceReading& row : device_readings()) {
    if (!row.column.title.empty()) set |= row.readings;
  }
  return set;
}

std::vector<Column> device_columns() {
  std::vector<Column> columns;
  for (const DeviceColumn& each : device_cells(false)) columns.push_back(each.column);
  return columns;
}

Row device_row(const Listing& listing, const Device& device, const Style& style) {
  return row_of(device_cells(false), listing, device, style);
}

std::vector<Column> lease_columns(bool some_end) {
  std::vector<Column> columns{{"LEASE", Align::left}, {"USER", Align::left, 8},
                              {"GPUS", Align::left},  {"AGE", Align::right, 0, 1},
                              {"PID", Align::left},   {"COMMAND", Align::left, 16}};
  if (some_end) columns.insert(columns.begin() + kAfterAge, {"END", Align::right});
  return columns;
}

Row lease_row(const Listing& listing, const ShortNames& names, const Ticket& lease, bool some_end,
              const Style& style) {
  Row row{{names.of(lease.id)},
          {lease.user.empty() ? fmt::format("uid {}", lease.uid) : printable(lease.user)},
          {devices_of_lease(lease, listing.facts.snapshot)},
          {duration_for_people(std::max<std::int64_t>(0, style.now_s - lease.since_s))},
          {fmt::format("{}{}", lease.kept ? "kept by " : "", lease.taker.pid)},
          {noted_command(lease)}};
  if (some_end) row.insert(row.begin() + kAfterAge, {end_of(listing, lease, style)});
  return row;
}

bool has_some_end(const Ledger& ledger) {
  return std::ranges::any_of(ledger.tickets, [](const Ticket& ticket) {
    return said_end_at_s(ticket, 0).has_value() || (ticket.phase == TicketPhase::granted && ticket.yield_s);
  });
}

std::vector<Column> process_columns() {
  return {{"GPU", Align::right},       {"PID", Align::right},       {"USER", Align::left, 8},
          {"GiB", Align::right},       {"AGE", Align::right, 0, 1}, {"LEASE", Align::left},
          {"COMMAND", Align::left, 16}};
}

Row process_row(const Listing& listing, const Device& device, const Process& process, const Style& style) {
  const std::string since_text =
      process.started_at_s
          ? duration_for_people(std::max<std::int64_t>(0, style.now_s - *process.started_at_s))
          : std::string(kUnknown);
  return {{label(device)},
          {fmt::format("{}", process.pid)},
          {process.user.empty() ? std::string(kUnknown) : printable(process.user)},
          {process.used_bytes ? fmt::format("{:.1f}", gib(*process.used_bytes)) : std::string(kUnknown)},
          {since_text},
          place_of(listing, device, process),
          {process.command.empty() ? std::string(kUnknown) : printable(process.command)}};
}

std::string unlisted_lines(const std::vector<Unlisted>& unlisted, std::size_t Unlisted::* count,
                           std::string_view noun, const Style& style) {
  std::string lines;
  for (const Unlisted& rest : unlisted) {
    if (rest.*count == 0) continue;
    const std::string user = rest.user.empty() ? fmt::format("uid {}", rest.uid) : printable(rest.user);
    lines += wrapped(fmt::format("and {} of {}", counted(rest.*count, fmt::format("more {}", noun)), user),
                     style.width, 0) +
             "\n";
  }
  return lines;
}

std::string summary_of(const Listing& listing, Detail detail, const Style& style) {
  const Snapshot& snapshot = listing.facts.snapshot;
  const auto free = static_cast<std::size_t>(std::ranges::count_if(listing.verdicts, &Verdict::free));
  const auto gpus = static_cast<std::size_t>(
      std::ranges::count_if(snapshot.devices, [](const Device& device) { return !device.mig; }));
  std::string text =
      fmt::format("{}, {} free", counted(gpus, "GPU"), free == 0 ? "none" : std::to_string(free));
  if (gpus != snapshot.devices.size()) {
    text = fmt::format("{}, {}, {} free", counted(gpus, "GPU"),
                       counted(snapshot.devices.size() - gpus, "MIG instance"),
                       free == 0 ? "none" : std::to_string(free));
  }
  if (listing.own) text += fmt::format(", inside lease {}", short_name(listing.ledger, *listing.own));
  if (const std::size_t waiting = count_waiting(listing.ledger); waiting > 0)
    text += fmt::format(", {} waiting", waiting);
  if (detail == Detail::brief) {
    return listing.next_start_s ? fmt::format("{}; a new request starts about {}", text,
                                              clock_time(*listing.next_start_s, style))
                                : text;
  }
  if (!snapshot.driver_version.empty()) text += ", driver " + printable(snapshot.driver_version);
  if (snapshot.cuda_version) {
    text += fmt::format(", CUDA {}.{}", *snapshot.cuda_version / 1000, *snapshot.cuda_version % 1000 / 10);
  }
  return text;
}

std::string listing_table(const Listing& listing, Detail detail, const Style& style) {
  if (listing.facts.snapshot.devices.empty()) return "";
  const bool brief = detail == Detail::brief;
  const std::string above =
      toned(wrapped(summary_of(listing, detail, style), style.width, 0), Tone::strong, style) + "\n";
  const std::string devices = device_table(listing, brief && is_in_use(listing), style);
  if (brief) return above + own_requests(listing, style) + devices + left_behind_in_brief(listing, style);
  return above + "\n" + devices + lease_tables(listing, style) + process_table(listing, style);
}

}  // namespace berth::view
