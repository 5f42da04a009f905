#include "berth/slurm/sbatch_options.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/slurm/slurm_readers.h"

namespace berth {
namespace {

constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kMostUnits = 1'000'000;

std::optional<std::int64_t> small_number(std::string_view text) {
  const auto number = number_from_text<std::int64_t>(text);
  return number && *number >= 0 && *number <= kMostUnits ? number : std::nullopt;
}

struct SpanUnit {
  std::string_view name;
  std::int64_t seconds;
};
constexpr auto kSpanUnits = std::to_array<SpanUnit>({{"", 1},
                                                     {"second", 1},
                                                     {"seconds", 1},
                                                     {"minute", kMinute},
                                                     {"minutes", kMinute},
                                                     {"hour", kHour},
                                                     {"hours", kHour},
                                                     {"day", kDay},
                                                     {"days", kDay},
                                                     {"week", 7 * kDay},
                                                     {"weeks", 7 * kDay}});

std::optional<std::string> replacement(char letter, TaskId id, std::string_view job_name,
                                       std::string_view user) {
  switch (letter) {
    case 'j':
      return id.index ? fmt::format("{}_{}", id.job, *id.index) : std::to_string(id.job);
    case 'A':
      return std::to_string(id.job);
    case 'a':
      return std::to_string(id.index.value_or(0));
    case 'x':
      return std::string(job_name);
    case 'u':
      return std::string(user);
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::int64_t> seconds_from_slurm(std::string_view text) {
  if (text == "UNLIMITED" || text == "INFINITE") return 0;
  const auto wrong =
      fail(ErrorCode::usage,
           "must be minutes, minutes:seconds, hours:minutes:seconds or days-hours:minutes:seconds");
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::int64_t sum = 0;
  if (has_days) {
    const auto days = small_number(text.substr(0, dash));
    if (!days) return wrong;
    sum = *days * kDay;
    text.remove_prefix(dash + 1);
  }
  const auto parts = parts_at(text, ':');
  if (parts.size() > 3) return wrong;
  // Two parts without days are minutes and seconds, one part minutes; with days it begins with
  // hours.
  std::int64_t unit = has_days || parts.size() == 3 ? kHour : kMinute;
  for (const std::string_view part : parts) {
    const auto number = small_number(part);
    if (!number) return wrong;
    sum += *number * unit;
    unit /= 60;
  }
  return sum;
}

std::optional<std::int64_t> span_from_slurm(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = small_number(text.substr(0, digits));
  const auto* const unit = std::ranges::find(kSpanUnits, text.substr(digits), &SpanUnit::name);
  return count && unit != kSpanUnits.end() ? std::optional(*count * unit->seconds) : std::nullopt;
}

Result<void> check_slurm_pattern(std::string_view pattern) {
  for (std::size_t at = pattern.find('%'); at != std::string_view::npos; at = pattern.find('%', at + 2)) {
    const char letter = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (!replacement(letter, {}, "", ""))
      return fail(ErrorCode::usage, "Berth knows %j, %A, %a, %x, %u and %% in the name of a file");
  }
  return {};
}

std::string filled_slurm_pattern(std::string_view pattern, TaskId id, std::string_view job_name,
                                 std::string_view user) {
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '%' && at + 1 < pattern.size())
      text += replacement(pattern[++at], id, job_name, user).value_or("");
    else
      text += pattern[at];
  }
  return text;
}

SlurmExport export_from_slurm(std::string_view text) {
  SlurmExport wish{.all = false, .names = {}, .values = {}};
  for (const std::string_view part : parts_at(text, ',')) {
    if (part == "ALL")
      wish.all = true;
    else if (part.find('=') != std::string_view::npos)
      wish.values.emplace_back(part);
    else if (!part.empty() && part != "NONE")
      wish.names.emplace_back(part);
  }
  return wish;
}

namespace {

using namespace std::string_view_literals;

constexpr auto kKept = SlurmUse::kept;
constexpr auto kNotKept = SlurmUse::not_kept;
constexpr auto kRefused = SlurmUse::refused;

constexpr std::string_view kNoLimitOfMemory = "Berth sets no limit of the machine's memory";
constexpr std::string_view kNoLimitOfCpus = "Berth sets no limit of CPUs";
constexpr std::string_view kOtherMachine =
    "submit on the machine that is meant, or by berth submit --anywhere";
constexpr std::string_view kNoPriorities =
    "the queue has no priorities; berth submit --yield lets others go first";

constexpr auto kSlurmOptions = std::to_array<SlurmOption>({
    {kKept, 'J', "job-name", "NAME", "what it is called (default: the name of the script)", "job-name"sv},
    {kKept, 'a', "array", "LIST", "a task for each index: 0-9, 1,4,7, 0-99:10, 0-99%4", read_array_option},
    {kKept, 0, "gres", "gpu[:TYPE]:N", "so many GPUs", read_gres},
    {kKept, 'G', "gpus", "[TYPE:]N", "the same", read_gpus},
    {kKept, 0, "gpus-per-node", "[TYPE:]N", "the same", read_gpus},
    {kKept, 0, "gpus-per-task", "[TYPE:]N", "the same", read_gpus},
    {kKept, 't', "time", "TIME", "it takes at most so long: minutes, H:M:S, D-H:M:S; then it is ended",
     read_time},
    {kKept, 'o', "output", "FILE", "where its output goes; %j, %A, %a, %x and %u are replaced", read_output},
    {kKept, 'e', "error", "FILE", "where its errors go (default: with its output)", read_error},
    {kKept, 'd', "dependency", "LIST", "afterok:12, afternotok:12, afterany:12:13, after:12, singleton",
     read_dependency},
    {kKept, 'b', "begin", "TIME", "not before then: 22:00, now+2hours", read_begin},
    {kKept, 'D', "chdir", "FOLDER", "where it runs (default: here)", &SlurmWish::folder},
    {kKept, 0, "export", "LIST", "variables that it gets: ALL, NONE, or names and NAME=VALUE",
     &SlurmWish::exported},
    {kKept, 0, "mail-user", "ADDRESS", "who gets mails about it (default: you)", read_mail_user},
    {kKept, 0, "mail-type", "LIST", "of what: BEGIN, END, FAIL, TIME_LIMIT, ALL, NONE", read_mail_type},
    {kKept, 0, "requeue", "", "run it again when it was cut off by a reboot or kill -9", "rerun"sv},
    {kKept, 0, "no-requeue", "", "do not (the default)"},
    {kKept, 'H', "hold", "", "it does not start until you say `berth edit JOB --no-hold`", "hold"sv},
    {kKept, 0, "comment", "TEXT", "shown to others beside the lease", "note"sv},
    {kKept, 0, "wrap", "COMMAND", "a command in place of a script", &SlurmWish::command},
    {kKept, 'N', "nodes", "N", "1", read_nodes},
    {kKept, 'n', "ntasks", "N", "1", read_tasks},
    {kKept, 0, "ntasks-per-node", "N", "1", read_tasks},
    {kKept, 'W', "wait", "", "return when it is over, and end as it ended", &SlurmWish::waits},
    {kKept, 0, "parsable", "", "print the number of the job only", &SlurmWish::number_alone},
    {kNotKept, 'c', "cpus-per-task", "N", kNoLimitOfCpus, &SlurmWish::cpus},
    {kNotKept, 0, "cpus-per-gpu", "N", kNoLimitOfCpus},
    {kNotKept, 0, "mem", "SIZE", kNoLimitOfMemory},
    {kNotKept, 0, "mem-per-cpu", "SIZE", kNoLimitOfMemory},
    {kNotKept, 0, "mem-per-gpu", "SIZE", kNoLimitOfMemory},
    {kNotKept, 'p', "partition", "NAME", "one machine has no partitions"},
    {kNotKept, 'A', "account", "NAME", "Berth keeps no accounts"},
    {kNotKept, 'q', "qos", "NAME", "Berth has no classes of service"},
    {kNotKept, 0, "gpu-freq", "LIST", "Berth sets no clocks of a GPU"},
    {kNotKept, 0, "deadline", "TIME", "a job waits until it can start; --time limits how long it runs"},
    {kNotKept, 0, "kill-on-invalid-dep", "yes|no",
     "if a job of afterok: fails, Berth cancels those that wait for it"},
    {kNotKept, 'v', "verbose", "", "berth queue and berth why tell more"},
    {kRefused, 'C', "constraint", "LIST", "name the model of the GPU: --gres=gpu:h100:1"},
    {kRefused, 'w', "nodelist", "LIST", kOtherMachine},
    {kRefused, 'x', "exclude", "LIST", kOtherMachine},
    {kRefused, 0, "exclusive", "[WHAT]", "ask for all GPUs of the machine by --gres=gpu:N"},
    {kRefused, 0, "signal", "SIGNAL",
     "at the end of its time a job gets SIGTERM, and SIGKILL after time_grace of the site file"},
    {kRefused, 'i', "input", "FILE", "redirect the input in the script: exec < FILE"},
    {kRefused, 0, "open-mode", "MODE",
     "the file of the output is written anew; with >> in the script it grows"},
    {kRefused, 0, "reservation", "NAME", "Berth has no reservations; --begin sets a time"},
    {kRefused, 0, "priority", "N", kNoPriorities},
    {kRefused, 0, "nice", "[N]", kNoPriorities},
    {kRefused, 'L', "licenses", "LIST", "Berth keeps GPUs only"},
    {kRefused, 0, "test-only", "", "berth why shows which GPUs would be granted, and berth queue who waits"},
});

const SlurmOption* slurm_option(std::string_view word) {
  const auto is_meant = [word](const SlurmOption& each) {
    if (word.starts_with("--")) return word.substr(2) == each.name;
    return word.size() == 2 && each.letter != 0 && word[1] == each.letter;
  };
  const auto* const found = std::ranges::find_if(kSlurmOptions, is_meant);
  return found == kSlurmOptions.end() ? nullptr : found;
}

Result<void> read_option(const SlurmOption& option, std::string_view value, SlurmReading& reading) {
  SlurmWish& wish = reading.wish;
  return std::visit(
      [&](auto reader) -> Result<void> {
        using Reader = decltype(reader);
        if constexpr (std::is_same_v<Reader, std::string_view>)
          wish.options.push_back(option.value.empty() ? fmt::format("--{}", reader)
                                                      : fmt::format("--{}={}", reader, value));
        else if constexpr (std::is_same_v<Reader, bool SlurmWish::*>)
          wish.*reader = true;
        else if constexpr (std::is_member_object_pointer_v<Reader>)
          wish.*reader = value;
        else if constexpr (std::is_pointer_v<Reader>)
          return reader(reading, option, value);
        return {};
      },
      option.reader);
}

// The short form that our pages use.
std::string as_typed(const std::string& option) {
  constexpr std::string_view kCount = "--count=";
  return option.starts_with(kCount) ? "-n " + option.substr(kCount.size()) : option;
}

}  // namespace

std::span<const SlurmOption> slurm_options() {
  return kSlurmOptions;
}

Result<SlurmWish> wish_from_slurm(const std::vector<std::pair<std::string, std::string>>& given) {
  SlurmReading reading;
  for (const auto& [name, value] : given) {
    const auto* const option = std::ranges::find(kSlurmOptions, name, &SlurmOption::name);
    if (option == kSlurmOptions.end()) continue;
    if (option->use == kNotKept)
      reading.wish.not_kept.push_back(fmt::format("--{} is not kept: {}", name, option->help));
    BERTH_DO(read_option(*option, value, reading));
  }
  return settled(std::move(reading));
}

std::optional<std::string> ours_for_slurm(std::string_view word, std::string_view value,
                                          std::span<const std::string_view> known) {
  const SlurmOption* const option = slurm_option(word);
  if (option == nullptr) return std::nullopt;
  if (option->use == kRefused) return fmt::format("{} is Slurm's: {}", printable(word), option->help);
  if (option->use == kNotKept)
    return fmt::format("{} is Slurm's: leave it out; {}", printable(word), option->help);
  const auto wish = wish_from_slurm({{std::string(option->name), std::string(value)}});
  if (!wish) return std::nullopt;
  if (wish->options.empty()) return fmt::format("{} is Slurm's: `berth sbatch` takes it", printable(word));
  std::string written;
  bool is_known = true;
  for (const std::string& each : wish->options) {
    written += " " + printable(as_typed(each));
    is_known = is_known && std::ranges::find(known, each.substr(0, each.find('='))) != known.end();
  }
  return fmt::format("{} is Slurm's: {}{}", printable(word), is_known ? "write" : "write berth submit",
                     written);
}

namespace {

constexpr std::string_view kSpace = " \t\r";

// Words that may stand before a command in a line, and words after which a command begins anew.
constexpr auto kBefore = std::to_array<std::string_view>(
    {"exec", "time", "nohup", "if", "then", "else", "elif", "do", "while", "until", "!", "{", "("});
constexpr auto kBetween = std::to_array<std::string_view>({"&&", "||", "|", ";", "&"});

bool is_assignment_word(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != 0 && equals != std::string_view::npos &&
         word.substr(0, equals).find_first_of("/$\"'`-") == std::string_view::npos;
}

bool calls_srun(std::string_view line) {
  bool begins = true;
  for (std::size_t at = line.find_first_not_of(kSpace); at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    std::string_view word = line.substr(at, end - at);
    if (word.front() == '#') return false;
    if (begins && word == "srun") return true;
    const bool stays = std::ranges::find(kBefore, word) != kBefore.end() || is_assignment_word(word);
    begins = std::ranges::find(kBetween, word) != kBetween.end() || word.ends_with(';') || (begins && stays);
    at = line.find_first_not_of(kSpace, end);
  }
  return false;
}

bool says_what_srun_is(std::string_view line) {
  constexpr auto kSayings =
      std::to_array<std::string_view>({"srun()", "srun ()", "function srun", "alias srun="});
  return std::ranges::any_of(kSayings, [line](std::string_view each) { return line.contains(each); });
}

}  // namespace

unsigned line_with_srun(std::string_view script) {
  unsigned number = 0;
  unsigned found = 0;
  while (!script.empty()) {
    const std::string_view line = script.substr(0, script.find('\n'));
    script.remove_prefix(std::min(script.size(), line.size() + 1));
    ++number;
    if (says_what_srun_is(line)) return 0;
    if (found == 0 && calls_srun(line)) found = number;
  }
  return found;
}

}  // namespace berth
