// Berth takes over only what it can keep. It tells the user about options that mean nothing on one
// machine, and refuses a wish that it cannot fulfil. So a job never runs differently from its
// script without a message.

#include "berth/slurm/model/slurm.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/slurm/model/slurm_options.h"

namespace berth {
namespace {

using Given = std::vector<std::pair<std::string, std::string>>;

constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kMostUnits = 1'000'000;

std::unexpected<Error> refused(std::string_view name, std::string_view value, std::string_view why) {
  return fail(ErrorCode::usage, fmt::format("--{} {}: {}", name, printable(value), why));
}

std::optional<std::int64_t> small_number(std::string_view text) {
  const auto number = number_from_text<std::int64_t>(text);
  return number && *number >= 0 && *number <= kMostUnits ? number : std::nullopt;
}

/// How many GPUs, and of which type.
struct SlurmGpus {
  unsigned count = 1;
  std::string type;

  bool operator==(const SlurmGpus&) const = default;
};

// "2", "a100:2" or "a100"; nullopt: none of these.
std::optional<SlurmGpus> gpus_from_text(std::string_view text) {
  SlurmGpus gpus;
  const std::size_t colon = text.rfind(':');
  const std::string_view last = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const auto count = number_from_text<unsigned>(last);
  if (count) {
    gpus.count = *count;
    if (colon != std::string_view::npos) gpus.type = text.substr(0, colon);
  } else {
    gpus.type = text;
  }
  const bool bad_type = gpus.type.find_first_of(":,=") != std::string::npos ||
                        (gpus.type.empty() && (!count || colon != std::string_view::npos));
  return bad_type || gpus.count == 0 ? std::nullopt : std::optional(std::move(gpus));
}

Result<SlurmGpus> gpus_of(std::string_view name, std::string_view value) {
  std::string_view rest = value;
  if (name == "gres") {
    if (rest.starts_with("gres/")) rest.remove_prefix(5);
    if (rest == "gpu") return SlurmGpus{};
    if (!rest.starts_with("gpu:"))
      return refused(name, value, "Berth has GPUs only; write --gres=gpu:2 or --gres=gpu:a100:2");
    rest.remove_prefix(4);
  }
  auto gpus = gpus_from_text(rest);
  if (!gpus)
    return refused(name, value,
                   "must be a number of GPUs of one type, from 1 up: 2 or a100:2 (with --gres: gpu:a100:2)");
  return *std::move(gpus);
}

// With one task on one node all of these mean the same.
constexpr auto kGpuOptions =
    std::to_array<std::string_view>({"gres", "gpus", "gpus-per-node", "gpus-per-task"});

Result<void> add_gpus(SlurmWish& wish, const Given& given) {
  std::optional<SlurmGpus> gpus;
  for (const auto& [name, value] : given) {
    if (std::ranges::find(kGpuOptions, name) == kGpuOptions.end()) continue;
    BERTH_LET(const auto these, gpus_of(name, value));
    if (gpus && *gpus != these)
      return refused(name, value, "another option asks for other GPUs; one of them is enough");
    gpus = these;
  }
  if (!gpus) {
    wish.not_kept.emplace_back("no option asks for GPUs: the job gets one");
    return {};
  }
  wish.options.push_back(fmt::format("--count={}", gpus->count));
  if (!gpus->type.empty()) wish.options.push_back("--name=" + gpus->type);
  return {};
}

Result<void> add_array(SlurmWish& wish, std::string_view value) {
  std::string_view list = value.substr(0, value.find('%'));
  const std::string_view limit = value.substr(list.size());
  std::vector<unsigned> indices;
  for (const std::string_view part : parts_at(list, ',')) {
    const std::size_t colon = part.find(':');
    auto these = indices_from_text(part.substr(0, colon));
    if (!these) return refused("array", value, these.error().message);
    const auto step =
        colon == std::string_view::npos ? 1U : number_from_text<unsigned>(part.substr(colon + 1)).value_or(0);
    if (step == 0) return refused("array", value, "the step behind : must be a number from 1 up");
    for (std::size_t i = 0; i < these->size(); i += step) {
      indices.push_back((*these)[i]);
      if (indices.size() > kMostTasks)
        return refused("array", value, fmt::format("more than {} tasks", kMostTasks));
    }
  }
  std::ranges::sort(indices);
  indices.erase(std::ranges::unique(indices).begin(), indices.end());
  wish.options.push_back(fmt::format("--array={}{}", indices_to_text(indices), limit));
  return {};
}

Result<void> add_time(SlurmWish& wish, std::string_view value) {
  const auto seconds = seconds_from_slurm(value);
  if (!seconds) return refused("time", value, seconds.error().message);
  if (*seconds != 0) wish.options.push_back("--time=" + time_for_people(*seconds));
  return {};
}

Result<void> add_dependency(SlurmWish& wish, std::string_view value) {
  for (const std::string_view part : parts_at(value, ',')) {
    const auto words = parts_at(part, ':');
    std::string_view option;
    if (words.front() == "afterok") option = "--after-ok";
    if (words.front() == "afternotok") option = "--after-fail";
    if (part == "singleton") {
      wish.options.emplace_back("--singleton");
      continue;
    }
    if (words.front() == "afterany" || words.front() == "after") option = "--after";
    const auto is_number = [](std::string_view word) {
      return number_from_text<std::uint64_t>(word).has_value();
    };
    if (option.empty() || words.size() < 2 || !std::ranges::all_of(words.begin() + 1, words.end(), is_number))
      return refused(
          "dependency", value,
          "Berth knows afterok:12, afternotok:12, afterany:12:13, after:12 and singleton, with commas");
    wish.options.push_back(fmt::format("{}={}", option, fmt::join(words.begin() + 1, words.end(), ",")));
    if (words.front() == "after")
      wish.not_kept.push_back(
          fmt::format("{}: waits until the other job is over, not only until it starts", printable(part)));
  }
  return {};
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

Result<void> add_begin(SlurmWish& wish, std::string_view value) {
  if (value == "now") return {};
  if (value == "midnight" || value == "noon") {
    wish.options.emplace_back(value == "noon" ? "--at=12:00" : "--at=00:00");
    return {};
  }
  if (value.starts_with("now+")) {
    const std::string_view span = value.substr(4);
    const std::size_t digits = std::min(span.find_first_not_of("0123456789"), span.size());
    const auto count = small_number(span.substr(0, digits));
    const auto* const unit = std::ranges::find(kSpanUnits, span.substr(digits), &SpanUnit::name);
    if (count && unit != kSpanUnits.end()) {
      if (*count != 0) wish.options.push_back("--at=" + time_for_people(*count * unit->seconds));
      return {};
    }
  } else if (value.size() == 5 && value[2] == ':') {
    wish.options.push_back(fmt::format("--at={}", value));
    return {};
  }
  return refused("begin", value, "must be a time of the day such as 22:00, noon or midnight, or now+2hours");
}

struct MailType {
  std::string_view name;
  std::string_view events;  ///< as --notify-on has them
};
constexpr auto kMailTypes = std::to_array<MailType>({{"BEGIN", "start"},
                                                     {"END", "end,fail"},
                                                     {"FAIL", "fail"},
                                                     {"TIME_LIMIT", "time"},
                                                     {"TIME_LIMIT_90", "time"},
                                                     {"TIME_LIMIT_80", "time"},
                                                     {"TIME_LIMIT_50", "time"},
                                                     {"INVALID_DEPEND", "fail"},
                                                     {"ALL", "start,end,fail,time"}});

Result<void> add_mail(SlurmWish& wish, std::string_view user, std::string_view types) {
  if (types.empty() || types == "NONE") return {};
  std::vector<std::string_view> events;
  for (const std::string_view type : parts_at(types, ',')) {
    const auto* const found = std::ranges::find(kMailTypes, type, &MailType::name);
    if (found == kMailTypes.end())
      return refused("mail-type", types, "Berth knows BEGIN, END, FAIL, TIME_LIMIT, ALL and NONE");
    for (const std::string_view event : parts_at(found->events, ',')) {
      if (std::ranges::find(events, event) == events.end()) events.push_back(event);
    }
  }
  wish.options.push_back(user.empty() ? "--notify=mail" : fmt::format("--notify=mail:{}", user));
  wish.options.push_back(fmt::format("--notify-on={}", fmt::join(events, ",")));
  return {};
}

Result<void> check_one(std::string_view name, std::string_view value, std::string_view why) {
  if (value == "1" || value == "1-1") return {};
  return refused(name, value, why);
}

Result<void> add_other(SlurmWish& wish, std::string_view name, std::string_view value) {
  if (name == "array") return add_array(wish, value);
  if (name == "time") return add_time(wish, value);
  if (name == "dependency") return add_dependency(wish, value);
  if (name == "begin") return add_begin(wish, value);
  if (name == "job-name") wish.options.push_back(fmt::format("--job-name={}", value));
  if (name == "comment") wish.options.push_back(fmt::format("--note={}", value));
  if (name == "requeue") wish.options.emplace_back("--rerun");
  if (name == "nodes") return check_one(name, value, "Berth runs a job on one machine; ask for 1");
  if (name == "ntasks" || name == "ntasks-per-node")
    return check_one(name, value,
                     "Berth starts a script once; ask for 1, and start more in it, for example by torchrun");
  const auto found = std::ranges::find(slurm_options(), name, &SlurmOption::name);
  if (found != slurm_options().end() && found->use == SlurmUse::not_kept)
    wish.not_kept.push_back(fmt::format("--{} is not kept: {}", name, found->help));
  return {};
}

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

Result<SlurmWish> wish_from_slurm(const Given& given) {
  SlurmWish wish;
  BERTH_DO(add_gpus(wish, given));
  std::string_view mail_user;
  std::string_view mail_type;
  for (const auto& [name, value] : given) {
    if (name == "mail-user") mail_user = value;
    if (name == "mail-type") mail_type = value;
    BERTH_DO(add_other(wish, name, value));
  }
  BERTH_DO(add_mail(wish, mail_user, mail_type));
  return wish;
}

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

}  // namespace berth
