#include "berth/site/site_keys.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "berth/site/site_file.h"

namespace berth::site::site_keys_test {
namespace {

SitePolicy policy_of(std::string_view text) {
  auto policy = apply_site_text({}, text, "f", false);
  if (!policy) FAIL(policy.error().message);
  return *std::move(policy);
}

// A value for each key about which `berth doctor` says something, and what it then says.
const std::map<std::string_view, std::pair<std::string_view, std::string_view>> kTold{
    {"hidden_tolerance",
     {"hidden_tolerance = \"1G\"", "up to 1 GiB in use that nobody explains is tolerated"}},
    {"commands", {"commands = \"none\"", "others' commands are not told"}},
    {"mask", {"mask = \"uuid\"", "masks have UUIDs"}},
    {"default_wait", {"default_wait = \"2h\"", "a wait lasts at most 2 h"}},
    {"idle_leftovers", {"idle_leftovers = \"2h\"", "processes that a command leaves behind keep its lease"}},
    {"idle_leases", {"idle_leases = \"45m\"", "nothing computes for 45 min yields to whoever waits"}},
    {"order", {"order = \"fair\"", "the user who has fewer GPUs comes first"}},
    {"expect", {"expect = \"limits\"", "comes first, by time limits, and after 21d who came first"}},
    {"backfill", {"backfill = false", "no job starts before an earlier rival"}},
    {"assumed_time", {"assumed_time = \"1d\"", "a job without a time limit is assumed to last 1d"}},
    {"time", {"time = \"48h\"", "a lease lasts at most 2d, even without --time"}},
    {"job_output", {"job_output = \"10M\"", "the output of a job takes at most 10 MiB"}},
    {"keep_jobs", {"keep_jobs = \"forever\"", "a job that is over is kept until its user forgets it"}},
    {"tenant_gpus", {"tenant_gpus = 2", "a program has 2 GPUs at once at most"}},
    {"tenant_time", {"tenant_time = \"30m\"", "a job of a program takes at most 30m"}},
    {"shares_per_gpu", {"shares_per_gpu = 4", "a GPU has at most 4 shares"}},
    {"leave_free", {"leave_free = 2", "requests that yield leave 2 GPUs free"}},
    {"limits", {"limits.gpus = 2", "a user may have at most 2 GPUs at the same time"}},
    {"host_name", {"host_name = \"gpu1\"", "this machine is called gpu1"}},
    {"labels", {"labels = [\"a\", \"b\"]", "its labels: a, b"}},
    {"excluded", {"excluded = [{ device = 3, reason = \"on loan\" }]", "3 is excluded (on loan)"}},
    {"ignored_programs", {"ignored_programs = [\"Xorg\"]", "programs that do not count: Xorg"}},
    {"ignored_users", {"ignored_users = [\"gdm\"]", "users that do not count: gdm"}},
    {"trust_leases", {"trust_leases = [2]", "leases alone decide about: 2"}},
    {"gpu_scheduler_locks", {"gpu_scheduler_locks = [\"/l\"]", "the lock /l"}},
};

// They are no rules, or are told with another key.
const std::set<std::string_view> kNotTold{"longest_wait", "time_grace", "hosts",          "hub",
                                          "connection",   "store",      "safe_gpu_locks", "foreign_locks"};

TEST_CASE("each key of the site file is told by berth doctor if it is a rule") {
  for (const Key& key : keys()) {
    CAPTURE(key.name);
    CHECK(kTold.contains(key.name) != kNotTold.contains(key.name));
    CHECK((key.words == nullptr) == kNotTold.contains(key.name));
  }
  CHECK(keys().size() == kTold.size() + kNotTold.size());
  const std::string usual = policy_in_words({});
  for (const auto& [name, told] : kTold) {
    CAPTURE(name);
    const std::string words = policy_in_words(policy_of(told.first));
    CHECK(words.contains(told.second));
    CHECK_FALSE(usual.contains(told.second));
  }
}

TEST_CASE("what is a rule for all users is refused in the file of one of them") {
  for (const std::string_view text : {"assumed_time = \"1h\"", "order = \"fair\"", "expect = \"limits\"",
                                      "longest_wait = \"30d\"", "backfill = false", "labels = [\"a\"]"}) {
    CAPTURE(text);
    CHECK(apply_site_text({}, text, "f", false));
    CHECK_FALSE(apply_site_text({}, text, "f", true));
  }
  CHECK(policy_of("longest_wait = \"30d\"").queue.longest_wait_s == 30 * 86'400);
  CHECK_FALSE(apply_site_text({}, "longest_wait = \"1h\"", "f", false));
  CHECK(apply_site_text({}, "labels = [\"a\"]", "f", true).error().message ==
        "f:1: only /etc/berth.toml may set labels: it is about the machine");
}

TEST_CASE("a word that is none of those that a key may have is an error with its line") {
  for (const std::string_view key : {"order", "expect", "connection"}) {
    const auto refused = apply_site_text({}, fmt::format("\n{} = \"quick\"", key), "f", false);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.starts_with(fmt::format("f:2: {} ", key)));
  }
}

TEST_CASE("labels are those of the last file that has some, and 64 at most") {
  std::string labels;
  for (int i = 0; i < 64; ++i) labels += fmt::format("\"label{}\", ", i);
  CHECK(policy_of(fmt::format("labels = [{}]", labels)).host.labels.size() == 64);
  CHECK(apply_site_text({}, fmt::format("labels = [{}\"more\"]", labels), "f", false).error().message ==
        "f:1: labels may have 64 entries at most");
  const auto both = apply_site_text(policy_of("labels = [\"a\"]"), "labels = [\"b\"]", "g", false);
  REQUIRE(both);
  CHECK(both->host.labels == std::vector<std::string>{"b"});
}

TEST_CASE("the rules that are usual are told too, one after another") {
  CHECK(
      policy_in_words({}) ==
      "up to 512 MiB in use that nobody explains is tolerated; later jobs fill gaps; a job without a time "
      "limit is assumed to last 1h; the output of a job takes at most 1 GiB; a job that is over is kept for "
      "30d");
}

TEST_CASE("limits of groups, and those of some hours, are told with whose and when") {
  const std::string words = policy_in_words(policy_of(
      "[limits.groups.interns]\ngpus = 1\n[[limits.hours]]\nwhen = \"Mon-Fri 08:00-18:00\"\ngpus = 2\n"));
  CHECK(
      words.contains("who is in the group interns may have at most 1 GPU at the same time; "
                     "Mon-Fri 08:00-18:00: a user may have at most 2 GPUs at the same time"));
}

TEST_CASE("each limit of a user is read from the site file, counts for the user, and is told") {
  for (const LimitRow& row : limit_rows()) {
    CAPTURE(row.key);
    const bool is_time = row.counts.empty();
    const SitePolicy policy =
        policy_of(fmt::format("[limits.users.ada]\n{} = {}\n", row.key, is_time ? "\"4h\"" : "3"));
    const UserLimits limits = limits_of(policy.limits, {7, "ada", {}}, {});
    const auto& found = limits.now.*row.found;
    REQUIRE(found);
    CHECK(*found == Limit{is_time ? 4 * 3600 : 3, "limits.users.ada"});
    CHECK(limits.best.*row.found == found);
    CHECK_FALSE(limits_of(policy.limits, {8, "bob", {}}, {}).now.*row.found);
    CHECK(policy_in_words(policy).contains("; ada may have at most " + limit_in_words(row, found->most)));
  }
  const auto words = [](std::string_view key, std::int64_t most) {
    const auto row = std::ranges::find(limit_rows(), key, &LimitRow::key);
    return limit_in_words(*row, most);
  };
  CHECK(words("gpus", 1) == "1 GPU at the same time");
  CHECK(words("lab_gpus", 2) == "2 GPUs at the same time through the queue of the lab");
  CHECK(words("waiting", 10) == "10 requests in the queue");
  CHECK(words("time", 4 * 3600) == "leases of 4h");
}

}  // namespace
}  // namespace berth::site::site_keys_test
