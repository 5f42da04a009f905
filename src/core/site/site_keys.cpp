#include "berth/site/site_keys.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/queue/schedule.h"
#include "berth/site/site_lists.h"
#include "berth/verdict/site_policy.h"

namespace berth::site {
namespace {

constexpr std::int64_t kMostTenantGpus = 1024;
constexpr std::int64_t kMostShares = 1000;

using Policy = SitePolicy;

// A time that may be "forever", a time, a number: each into its member of the policy.
template <auto Member>
Result<void> span_into(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(page.policy.*Member, read_span(page, key, node, page.policy.*Member));
  return {};
}
template <auto Member>
Result<void> seconds_into(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(page.policy.*Member, read_seconds(page, key, node, page.policy.*Member));
  return {};
}
template <auto Member, std::uint64_t Least>
Result<void> bytes_into(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(page.policy.*Member, read_bytes(page, key, node, Least, page.policy.*Member));
  return {};
}
template <auto Member, std::int64_t Most>
Result<void> number_into(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(page.policy.*Member, read_number(page, key, node, Most, page.policy.*Member));
  return {};
}
template <auto Member>
Result<void> names_into(Page& page, std::string_view key, const toml::node& node) {
  return read_names(page, key, node, page.policy.*Member);
}

Result<void> read_assumed_time(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  BERTH_LET(page.policy.queue.assumed_s, read_seconds(page, key, node, std::nullopt));
  return {};
}

// A word that `FromText` knows.
template <auto FromText>
auto word_of(Page& page, std::string_view key, const toml::node& node) -> decltype(FromText(key)) {
  BERTH_LET(const auto text, text_of(page, node, key));
  auto word = FromText(text);
  if (!word) return wrong(page, node, fmt::format("{} {}", key, word.error().message));
  return word;
}

Result<void> read_order(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  BERTH_LET(page.policy.queue.order, word_of<queue_order_from_text>(page, key, node));
  return {};
}

Result<void> read_expect(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  BERTH_LET(page.policy.queue.expect, word_of<expect_from_text>(page, key, node));
  page.policy.says_expect = true;
  return {};
}

Result<void> read_longest_wait(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  BERTH_LET(const auto seconds, read_seconds(page, key, node, std::nullopt));
  if (seconds < kLeastLongestWaitS)
    return wrong(page, node, fmt::format("{} must be at least {}", key, time_for_people(kLeastLongestWaitS)));
  page.policy.queue.longest_wait_s = seconds;
  return {};
}

Result<void> read_leave_free(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const unsigned count, read_count(page, key, node, "GPUs"));
  if (page.only_narrow && count < page.policy.leave_free)
    return wrong(page, node,
                 fmt::format("{} may only be raised here: the site says {}", key, page.policy.leave_free));
  page.policy.leave_free = count;
  return {};
}

Result<void> read_backfill(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  BERTH_LET(page.policy.queue.backfill, read_truth(page, key, node));
  return {};
}

Result<void> read_commands(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const auto text, text_of(page, node, key));
  const auto telling = from_word<CommandVisibility>(text);
  if (!telling) return wrong(page, node, fmt::format("{} must be \"full\", \"program\" or \"none\"", key));
  if (page.only_narrow && *telling < page.policy.commands)
    return wrong(page, node, fmt::format("{} may only be narrowed here: the site tells less", key));
  page.policy.commands = *telling;
  return {};
}

Result<void> read_mask(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const auto text, text_of(page, node, key));
  const auto form = from_word<MaskForm>(text);
  if (!form) return wrong(page, node, fmt::format("{} must be \"index\" or \"uuid\"", key));
  if (page.only_narrow && *form < page.policy.mask)
    return wrong(page, node, fmt::format("{} may not be \"index\" here: the site says \"uuid\"", key));
  page.policy.mask = *form;
  return {};
}

// No rule: a connection is kept by the user's own ssh.
Result<void> read_connection(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(page.policy.connection, word_of<connection_from_text>(page, key, node));
  return {};
}

// No rule: without it a user waits by the rules of step 1, as with --hosts.
Result<void> read_store_socket(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(auto path, text_of(page, node, key));
  if (!path.starts_with('/'))
    return wrong(page, node,
                 fmt::format("{} must be the whole path of the socket of `berth serve --store`", key));
  page.policy.store_socket = std::move(path);
  return {};
}

Result<void> read_trusted(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_of_the_machine(page, key, node));
  const auto* list = node.as_array();
  if (list == nullptr)
    return wrong(page, node, fmt::format("{} must be a list of devices: {} = [0, \"GPU-5a1c\"]", key, key));
  for (const toml::node& each : *list) {
    const auto* number = each.as_integer();
    if (number != nullptr && number->get() >= 0) {
      page.policy.trust_leases.push_back(std::to_string(number->get()));
      continue;
    }
    BERTH_LET(auto text, text_of(page, each, fmt::format("an entry of {}", key)));
    page.policy.trust_leases.push_back(std::move(text));
  }
  return {};
}

Result<void> read_host_name(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_of_the_machine(page, key, node));
  BERTH_LET(auto name, text_of(page, node, key));
  if (const auto fit = check_label(name); !fit)
    return wrong(page, node, fmt::format("{}: {}", key, fit.error().message));
  page.policy.host.name = std::move(name);
  return {};
}

Result<void> read_labels(Page& page, std::string_view key, const toml::node& node) {
  constexpr std::size_t kMostLabels = 64;
  BERTH_DO(is_of_the_machine(page, key, node));
  std::vector<std::string>& labels = page.policy.host.labels;
  labels.clear();
  BERTH_DO(read_names(page, key, node, labels));
  if (labels.size() > kMostLabels)
    return wrong(page, node, fmt::format("{} may have {} entries at most", key, kMostLabels));
  for (auto each = labels.begin(); each != labels.end(); ++each) {
    if (const auto fit = check_label(*each); !fit)
      return wrong(page, node, fmt::format("an entry of {}: {}", key, fit.error().message));
    if (std::find(labels.begin(), each, *each) != each)
      return wrong(page, node, fmt::format("{} names {} twice", key, *each));
  }
  return {};
}

// "2 GPUs at the same time and leases of 4h"
std::string allowance_in_words(const Allowance& allowance) {
  std::vector<std::string> parts;
  for (const LimitRow& row : limit_rows()) {
    if (const auto& most = allowance.*row.allowed) parts.push_back(limit_in_words(row, *most));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

void limits_in_words(const Allowances& limits, std::string_view when, std::vector<std::string>& parts) {
  const auto tell = [&](std::string_view who, const Allowance& allowance) {
    if (allowance != Allowance())
      parts.push_back(fmt::format("{}{} may have at most {}", when, who, allowance_in_words(allowance)));
  };
  tell("a user", limits.each);
  for (const auto& [user, allowance] : limits.of_users) tell(user, allowance);
  for (const auto& [group, allowance] : limits.of_groups)
    tell(fmt::format("who is in the group {}", group), allowance);
}

// The words of each key, in the order of the table.

std::string words_of_commands(const Policy& policy) {
  if (policy.commands == CommandVisibility::full) return "";
  return policy.commands == CommandVisibility::none ? "others' commands are not told"
                                                    : "of others' commands the program is told";
}

std::string words_of_mask(const Policy& policy) {
  return policy.mask == MaskForm::uuid ? "masks have UUIDs" : "";
}

/// "": there is none.
template <auto Member, auto InWords>
std::string value_of(const Policy& policy) {
  const auto& value = policy.*Member;
  if constexpr (requires { value.has_value(); })
    return value ? InWords(*value) : "";
  else
    return InWords(value);
}

constexpr auto kAsDelay = [](std::int64_t seconds) { return duration_for_people(seconds); };
constexpr auto kAsNumber = [](unsigned number) { return std::to_string(number); };

std::string words_of_order(const Policy& policy) {
  return rule_in_words(policy.queue.order);
}

std::string words_of_expect(const Policy& policy) {
  if (policy.queue.expect == Expect::none) return "";
  return fmt::format("who has waited longest for its length comes first, by {}, and after {} who came first",
                     policy.queue.expect == Expect::limits ? "time limits" : "time limits and earlier runs",
                     time_for_people(policy.queue.longest_wait_s));
}

std::string words_of_backfill(const Policy& policy) {
  return policy.queue.backfill ? "later jobs fill gaps" : "no job starts before an earlier rival";
}

std::string words_of_kept_jobs(const Policy& policy) {
  return policy.keep_jobs_s
             ? fmt::format("a job that is over is kept for {}", time_for_people(*policy.keep_jobs_s))
             : "a job that is over is kept until its user forgets it";
}

std::string words_of_leave_free(const Policy& policy) {
  return policy.leave_free > 0
             ? fmt::format("requests that yield leave {} free", berth::counted(policy.leave_free, "GPU"))
             : "";
}

std::string words_of_limits(const Policy& policy) {
  std::vector<std::string> parts;
  limits_in_words(policy.limits.always, "", parts);
  for (const HourlyAllowances& each : policy.limits.hours)
    limits_in_words(each.limits, fmt::format("{}: ", each.when.text), parts);
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string words_of_host_name(const Policy& policy) {
  return policy.host.name.empty() ? "" : fmt::format("this machine is called {}", policy.host.name);
}

std::string words_of_list(std::string_view start, const std::vector<std::string>& list) {
  return list.empty() ? "" : fmt::format("{}: {}", start, fmt::join(list, ", "));
}

std::string words_of_exclusions(const Policy& policy) {
  std::vector<std::string> parts;
  for (const ExcludedDevice& each : policy.excluded)
    parts.push_back(fmt::format("{} is excluded ({})", each.selector, each.reason));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string words_of_locks(const Policy& policy) {
  std::vector<std::string> parts;
  for (const OriginalLock& row : policy.original_locks)
    parts.push_back(fmt::format("the lock {} counts{}", row.path,
                                row.program.empty() ? "" : fmt::format(" (originals of {})", row.program)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

constexpr auto kKeys = std::to_array<Key>({
    {"hidden_tolerance", bytes_into<&Policy::hidden_tolerance_bytes, 0>,
     value_of<&Policy::hidden_tolerance_bytes, bytes_for_people>,
     "up to {} in use that nobody explains is tolerated"},
    {"commands", read_commands, words_of_commands},
    {"mask", read_mask, words_of_mask},
    {"default_wait", span_into<&Policy::default_wait_s>, value_of<&Policy::default_wait_s, kAsDelay>,
     "a wait lasts at most {}"},
    {"idle_leftovers", span_into<&Policy::idle_leftovers_s>, value_of<&Policy::idle_leftovers_s, kAsDelay>,
     "processes that a command leaves behind keep its lease for at most {} after they last computed"},
    {"idle_leases", span_into<&Policy::idle_leases_s>, value_of<&Policy::idle_leases_s, kAsDelay>,
     "a job of `berth run` on whose GPUs nothing computes for {} yields to whoever waits"},
    {"order", read_order, words_of_order},
    {"expect", read_expect, words_of_expect},
    {"longest_wait", read_longest_wait},
    {"backfill", read_backfill, words_of_backfill},
    {"assumed_time", read_assumed_time,
     [](const Policy& policy) { return time_for_people(policy.queue.assumed_s); },
     "a job without a time limit is assumed to last {}"},
    {"time", seconds_into<&Policy::most_time_s>, value_of<&Policy::most_time_s, time_for_people>,
     "a lease lasts at most {}, even without --time"},
    {"time_grace", seconds_into<&Policy::time_grace_s>},
    {"job_output", bytes_into<&Policy::job_output_bytes, kLeastOutput>,
     value_of<&Policy::job_output_bytes, bytes_for_people>, "the output of a job takes at most {}"},
    {"keep_jobs", span_into<&Policy::keep_jobs_s>, words_of_kept_jobs},
    {"tenant_gpus", number_into<&Policy::tenant_gpus, kMostTenantGpus>,
     value_of<&Policy::tenant_gpus, kAsNumber>, "a program has {} GPUs at once at most"},
    {"tenant_time", seconds_into<&Policy::tenant_time_s>, value_of<&Policy::tenant_time_s, time_for_people>,
     "a job of a program takes at most {}"},
    {"shares_per_gpu", number_into<&Policy::shares_per_gpu, kMostShares>,
     value_of<&Policy::shares_per_gpu, kAsNumber>, "a GPU has at most {} shares"},
    {"leave_free", read_leave_free, words_of_leave_free},
    {"limits", read_limits, words_of_limits},
    {"hosts", read_hosts},
    {"hub", read_hub},
    {"connection", read_connection},
    {"store", read_store_socket},
    {"host_name", read_host_name, words_of_host_name},
    {"labels", read_labels,
     [](const Policy& policy) { return words_of_list("its labels", policy.host.labels); }},
    {"excluded", read_exclusions, words_of_exclusions},
    {"ignored_programs", names_into<&Policy::ignored_programs>,
     [](const Policy& policy) {
       return words_of_list("programs that do not count", policy.ignored_programs);
     }},
    {"ignored_users", names_into<&Policy::ignored_users>,
     [](const Policy& policy) { return words_of_list("users that do not count", policy.ignored_users); }},
    {"trust_leases", read_trusted,
     [](const Policy& policy) { return words_of_list("leases alone decide about", policy.trust_leases); }},
    {"gpu_scheduler_locks", read_scheduler_locks, words_of_locks},
    {"safe_gpu_locks", read_safe_gpu_locks},
    {"foreign_locks", read_foreign_locks},
});

}  // namespace

std::span<const Key> keys() {
  return kKeys;
}

std::string policy_in_words(const SitePolicy& policy) {
  std::vector<std::string> parts;
  for (const Key& key : kKeys) {
    const std::string words = key.words == nullptr ? "" : key.words(policy);
    if (!words.empty()) parts.push_back(fmt::format(fmt::runtime(key.sentence), words));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace berth::site
