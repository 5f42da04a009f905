// Berth takes over only what it can keep. It tells the user about options that mean nothing on one
// machine, and refuses a wish that it cannot fulfil. So a job never runs differently from its
// script without a message.

#include "berth/slurm/slurm_readers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/job/job.h"
#include "berth/slurm/sbatch_options.h"

namespace berth {
namespace {

std::unexpected<Error> refused(std::string_view name, std::string_view value, std::string_view why) {
  return fail(ErrorCode::usage, "--{} {}: {}", name, printable(value), why);
}

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

// With one task on one node all options for GPUs mean the same. `text`: the value without what is
// of its option alone.
Result<void> take_gpus(SlurmReading& reading, const SlurmOption& option, std::string_view value,
                       std::string_view text) {
  auto gpus = gpus_from_text(text);
  if (!gpus)
    return refused(option.name, value,
                   "must be a number of GPUs of one type, from 1 up: 2 or a100:2 (with --gres: gpu:a100:2)");
  if (reading.gpus && *reading.gpus != *gpus)
    return refused(option.name, value, "another option asks for other GPUs; one of them is enough");
  reading.gpus = std::move(gpus);
  return {};
}

Result<void> check_one(const SlurmOption& option, std::string_view value, std::string_view why) {
  if (value == "1" || value == "1-1") return {};
  return refused(option.name, value, why);
}

Result<void> take_pattern(const SlurmOption& option, std::string_view value, std::string& pattern) {
  if (const auto right = check_slurm_pattern(value); !right)
    return refused(option.name, value, right.error().message);
  pattern = value;
  return {};
}

}  // namespace

Result<void> read_gres(SlurmReading& reading, const SlurmOption& option, std::string_view value) {
  std::string_view text = value;
  if (text.starts_with("gres/")) text.remove_prefix(5);
  if (text == "gpu") return take_gpus(reading, option, value, "1");
  if (!text.starts_with("gpu:"))
    return refused(option.name, value, "Berth has GPUs only; write --gres=gpu:2 or --gres=gpu:a100:2");
  return take_gpus(reading, option, value, text.substr(4));
}

Result<void> read_gpus(SlurmReading& reading, const SlurmOption& option, std::string_view value) {
  return take_gpus(reading, option, value, value);
}

Result<void> read_array_option(SlurmReading& reading, const SlurmOption& option, std::string_view value) {
  std::string_view list = value.substr(0, value.find('%'));
  const std::string_view limit = value.substr(list.size());
  std::vector<unsigned> indices;
  for (const std::string_view part : parts_at(list, ',')) {
    const std::size_t colon = part.find(':');
    auto these = indices_from_text(part.substr(0, colon));
    if (!these) return refused(option.name, value, these.error().message);
    const auto step =
        colon == std::string_view::npos ? 1U : number_from_text<unsigned>(part.substr(colon + 1)).value_or(0);
    if (step == 0) return refused(option.name, value, "the step behind : must be a number from 1 up");
    for (std::size_t i = 0; i < these->size(); i += step) {
      indices.push_back((*these)[i]);
      if (indices.size() > kMostTasks)
        return refused(option.name, value, fmt::format("more than {} tasks", kMostTasks));
    }
  }
  std::ranges::sort(indices);
  indices.erase(std::ranges::unique(indices).begin(), indices.end());
  reading.wish.options.push_back(fmt::format("--array={}{}", indices_to_text(indices), limit));
  return {};
}

Result<void> read_time(SlurmReading& reading, const SlurmOption& option, std::string_view value) {
  const auto seconds = seconds_from_slurm(value);
  if (!seconds) return refused(option.name, value, seconds.error().message);
  if (*seconds != 0) reading.wish.options.push_back("--time=" + time_for_people(*seconds));
  return {};
}

Result<void> read_dependency(SlurmReading& reading, const SlurmOption& option, std::string_view value) {
  for (const std::string_view part : parts_at(value, ',')) {
    const auto words = parts_at(part, ':');
    std::string_view ours;
    if (words.front() == "afterok") ours = "--after-ok";
    if (words.front() == "afternotok") ours = "--after-fail";
    if (part == "singleton") {
      reading.wish.options.emplace_back("--singleton");
      continue;
    }
    if (words.front() == "afterany" || words.front() == "after") ours = "--after";
    const auto is_number = [](std::string_view word) {
      return number_from_text<std::uint64_t>(word).has_value();
    };
    if (ours.empty() || words.size() < 2 || !std::ranges::all_of(words.begin() + 1, words.end(), is_number))
      return refused(
          option.name, value,
          "Berth knows afterok:12, afternotok:12, afterany:12:13, after:12 and singleton, with commas");
    reading.wish.options.push_back(
        fmt::format("{}={}", ours, fmt::join(words.begin() + 1, words.end(), ",")));
    if (words.front() == "after")
      reading.wish.not_kept.push_back(
          fmt::format("{}: waits until the other job is over, not only until it starts", printable(part)));
  }
  return {};
}

Result<void> read_begin(SlurmReading& reading, const SlurmOption& option, std::string_view value) {
  constexpr std::string_view kFromNow = "now+";
  if (value == "now") return {};
  constexpr std::int64_t kNone = -1;
  const std::int64_t span_s =
      value.starts_with(kFromNow) ? span_from_slurm(value.substr(kFromNow.size())).value_or(kNone) : kNone;
  std::string at;
  if (value == "midnight" || value == "noon")
    at = value == "noon" ? "12:00" : "00:00";
  else if (span_s == 0)
    return {};
  else if (span_s > 0)
    at = time_for_people(span_s);
  else if (value.size() == 5 && value[2] == ':')
    at = value;
  else
    return refused(option.name, value,
                   "must be a time of the day such as 22:00, noon or midnight, or now+2hours");
  reading.wish.options.push_back("--at=" + at);
  return {};
}

Result<void> read_mail_user(SlurmReading& reading, const SlurmOption&, std::string_view value) {
  reading.mail_user = value;
  return {};
}

Result<void> read_mail_type(SlurmReading& reading, const SlurmOption& option, std::string_view value) {
  reading.mail_events.clear();
  if (value.empty() || value == "NONE") return {};
  for (const std::string_view type : parts_at(value, ',')) {
    const auto* const found = std::ranges::find(kMailTypes, type, &MailType::name);
    if (found == kMailTypes.end())
      return refused(option.name, value, "Berth knows BEGIN, END, FAIL, TIME_LIMIT, ALL and NONE");
    for (const std::string_view event : parts_at(found->events, ',')) {
      if (std::ranges::find(reading.mail_events, event) == reading.mail_events.end())
        reading.mail_events.push_back(event);
    }
  }
  return {};
}

Result<void> read_nodes(SlurmReading&, const SlurmOption& option, std::string_view value) {
  return check_one(option, value, "Berth runs a job on one machine; ask for 1");
}

Result<void> read_tasks(SlurmReading&, const SlurmOption& option, std::string_view value) {
  return check_one(option, value,
                   "Berth starts a script once; ask for 1, and start more in it, for example by torchrun");
}

Result<void> read_output(SlurmReading& reading, const SlurmOption& option, std::string_view value) {
  return take_pattern(option, value, reading.wish.output_to);
}

Result<void> read_error(SlurmReading& reading, const SlurmOption& option, std::string_view value) {
  return take_pattern(option, value, reading.wish.error_to);
}

SlurmWish settled(SlurmReading reading) {
  SlurmWish& wish = reading.wish;
  if (const auto& gpus = reading.gpus) {
    wish.options.push_back(fmt::format("--count={}", gpus->count));
    if (!gpus->type.empty()) wish.options.push_back("--name=" + gpus->type);
  } else {
    wish.not_kept.emplace_back("no option asks for GPUs: the job gets one");
  }
  if (!reading.mail_events.empty()) {
    const std::string& user = reading.mail_user;
    wish.options.push_back(user.empty() ? "--notify=mail" : "--notify=mail:" + user);
    wish.options.push_back(fmt::format("--notify-on={}", fmt::join(reading.mail_events, ",")));
  }
  return std::move(wish);
}

}  // namespace berth
