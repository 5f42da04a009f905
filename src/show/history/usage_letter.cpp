#include "berth/history/usage_letter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/view/text.h"
#include "berth/view/usage.h"

namespace berth::history {
namespace {

constexpr std::size_t kMostUsers = 20;  // so that the letter is a page
constexpr std::size_t kMostSick = 10;
constexpr int kMostlyLeased = 50;  // percent of a step: its memory counts as a lease's
constexpr std::int64_t kSecondsInHour = 3600;
constexpr double kHoursWithShare = 0.1;  // of less, a share says nothing
constexpr std::uint64_t kBytesInMib = 1U << 20U;

double percentage(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

/// The one in the middle. REQUIRES: there is one.
template <class Number>
Number median_of(std::vector<Number> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

using WaitsByUser = std::map<std::string, std::vector<std::int64_t>>;

WaitsByUser waits_of(const LetterFacts& facts) {
  WaitsByUser waits;
  if (!facts.leases) return waits;
  for (const RecordedLease& lease : facts.leases->leases) {
    // A lease that began before is of another letter.
    if (lease.wish && lease.begun_s >= facts.leases->from_s)
      waits[lease.user].push_back(std::max<std::int64_t>(0, lease.begun_s - lease.wish->joined_s));
  }
  return waits;
}

std::string letter_sums(const LetterFacts& facts) {
  const Usage& usage = facts.usage;
  const std::int64_t watched_s = std::max<std::int64_t>(0, usage.to_s - usage.from_s - usage.unwatched_s);
  if (watched_s < kSecondsInHour)
    return fmt::format("The agent looked for {}: too short to say how much was leased.\n",
                       duration_for_people(watched_s));
  double leased = 0;
  double used = 0;
  for (const UsageRow& row : facts.usage.rows) {
    leased += row.leased_gpu_hours;
    used += row.used_gpu_hours;
  }
  const std::size_t gpus = facts.devices.size();
  const double hours =
      static_cast<double>(gpus) * static_cast<double>(watched_s) / static_cast<double>(kSecondsInHour);
  std::string text =
      fmt::format("{} GPU{} {} leased for {:.0f} of {:.0f} hours ({:.0f} %).\n", gpus, gpus == 1 ? "" : "s",
                  gpus == 1 ? "was" : "were", leased, hours, percentage(leased, hours));
  if (leased >= kHoursWithShare) {
    text += fmt::format("In {:.0f} of these hours ({:.0f} %), no program of the lease computed.\n",
                        leased - used, percentage(leased - used, leased));
  }
  return text;
}

std::string users_table(const LetterFacts& facts, const WaitsByUser& waits) {
  std::vector<view::Row> rows;
  for (const UsageRow& user : facts.usage.rows) {
    if (rows.size() == kMostUsers) break;
    const auto of_user = waits.find(user.who);
    const bool has_waits = of_user != waits.end();
    const double idle = user.leased_gpu_hours - user.used_gpu_hours;
    rows.push_back(
        {{printable(user.who)},
         {std::to_string(user.leases)},
         {fmt::format("{:.1f} h", user.leased_gpu_hours)},
         {fmt::format("{:.1f} h", idle)},
         {user.leased_gpu_hours >= kHoursWithShare
              ? fmt::format("{:.0f} %", percentage(idle, user.leased_gpu_hours))
              : std::string(view::kUnknown)},
         {has_waits ? duration_for_people(median_of(of_user->second)) : std::string(view::kUnknown)},
         {has_waits ? duration_for_people(std::ranges::max(of_user->second)) : std::string(view::kUnknown)}});
  }
  if (rows.empty()) return "Nobody had a lease.\n";
  const std::size_t others = facts.usage.rows.size() - rows.size();
  std::string text = view::table({{"USER"},
                                  {"LEASES", view::Align::right},
                                  {"LEASED", view::Align::right},
                                  {"IDLE", view::Align::right},
                                  {"IDLE %", view::Align::right},
                                  {"WAITED", view::Align::right},
                                  {"LONGEST", view::Align::right}},
                                 std::move(rows), {.width = view::kUnlimited});
  if (others > 0) text += fmt::format("and {} more, with fewer hours\n", others);
  return text + "WAITED is the wait in the middle of all waits, LONGEST the longest of them.\n";
}

std::string waits_text(const LetterFacts& facts, const WaitsByUser& waits) {
  if (!facts.leases)
    return fmt::format("How long requests waited is not told: {}.\n",
                       printable(facts.leases.error().message));
  std::vector<std::int64_t> all;
  for (const auto& [user, of_user] : waits) all.insert(all.end(), of_user.begin(), of_user.end());
  if (all.empty()) return {};
  const auto longest =
      std::ranges::max_element(waits, {}, [](const auto& each) { return std::ranges::max(each.second); });
  const std::string longest_text = duration_for_people(std::ranges::max(longest->second));
  if (all.size() == 1)
    return fmt::format("1 request waited for {} ({}).\n", longest_text, printable(longest->first));
  return fmt::format("Half of {} requests had their GPUs within {}; the longest wait was {} ({}).\n",
                     all.size(), duration_for_people(median_of(all)), longest_text,
                     printable(longest->first));
}

Reading<std::uint64_t> memory_of_devices(const LetterFacts& facts) {
  Reading<std::uint64_t> most;
  if (!facts.now) return most;
  for (const Device& device : facts.now->facts.snapshot.devices) {
    if (device.memory.total_bytes) most = std::max(most.value_or(0), *device.memory.total_bytes);
  }
  return most;
}

std::string used_memory_text(const LetterFacts& facts) {
  std::vector<std::uint64_t> used;
  for (const DeviceHistory& device : facts.devices) {
    for (const auto& [time_s, sample] : device.rows) {
      if (sample.leased_percent.value_or(0) >= kMostlyLeased && sample.memory_used_mib)
        used.push_back(static_cast<std::uint64_t>(std::max(0, *sample.memory_used_mib)) * kBytesInMib);
    }
  }
  if (used.empty()) return {};
  const auto total = memory_of_devices(facts);
  return fmt::format("Of {}, a leased GPU used up to {} half of the time, and {} at most.\n",
                     total ? bytes_for_people(*total) : "its memory", bytes_for_people(median_of(used)),
                     bytes_for_people(std::ranges::max(used)));
}

std::string sick_text(const LetterFacts& facts) {
  if (!facts.now) return "Whether a GPU is sick now is not told: no agent was asked.\n";
  std::vector<std::string> sick;
  const Facts& now = facts.now->facts;
  for (const Verdict& verdict : facts.now->verdicts) {
    const Device* device = find_device(now.snapshot, verdict.uuid);
    if (device != nullptr && verdict.failed == Clause::healthy)
      sick.push_back(fmt::format("GPU {}: {}", printable(label(*device)), printable(verdict.reason)));
  }
  for (const auto& [uuid, users] : now.passed_over_for) {
    const Device* device = find_device(now.snapshot, uuid);
    if (device == nullptr || users.empty()) continue;
    sick.push_back(fmt::format("GPU {}: passed over for {} user{}: {}", printable(label(*device)),
                               users.size(), users.size() == 1 ? "" : "s", printable(users.front().reason)));
  }
  if (sick.empty()) return "No GPU is sick now.\n";
  std::string text = "Sick now:\n";
  for (std::size_t i = 0; i < std::min(sick.size(), kMostSick); ++i) text += fmt::format("  {}\n", sick[i]);
  if (sick.size() > kMostSick) text += fmt::format("  and {} more\n", sick.size() - kMostSick);
  return text;
}

}  // namespace

std::string usage_letter(const LetterFacts& facts, const view::Style& style) {
  // It is read on another day, so it tells the dates.
  constexpr std::int64_t kOneDay = 86'400;
  const view::Style later{.now_s = facts.usage.to_s + kOneDay, .utc_offset_s = style.utc_offset_s};
  const WaitsByUser waits = waits_of(facts);
  std::string text = fmt::format(
      "GPUs{} from {} to {}\n\n", facts.host.empty() ? "" : fmt::format(" of {}", printable(facts.host)),
      view::clock_time(facts.usage.from_s, later), view::clock_time(facts.usage.to_s, later));
  // First, since all that follows is of the rest.
  if (const std::string unwatched = view::unwatched_text(facts.usage); !unwatched.empty())
    text += unwatched + "\n";
  text += letter_sums(facts);
  text += waits_text(facts, waits);
  text += used_memory_text(facts);
  text += sick_text(facts);
  return text + "\n" + users_table(facts, waits);
}

}  // namespace berth::history
