#include "berth/lab_queue/store_health.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "berth/base/units.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;
using view::Finding;
using view::Level;
using Findings = std::vector<Finding>;
using Version = std::array<unsigned, 3>;

constexpr Version kOldestEtcd{3, 4, 0};
/// What the makers of etcd call the least for production, of each line that was maintained.
constexpr Version kAdvised34{3, 4, 22};
constexpr Version kAdvised35{3, 5, 6};
/// From 3.5.0 up to this one etcd can lose what it has said to have, when it is killed.
constexpr Version kLosesUntil{3, 5, 3};
constexpr auto kSlow = 100ms;
constexpr std::size_t kMostNames = 8;

Version version_of(std::string_view text) {
  Version version{};
  for (unsigned& part : version) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc{}) break;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  return version;
}

/// "gpu1, gpu2 and 3 more".
template <class Names>
std::string some_of(const Names& names) {
  std::vector<std::string_view> first;
  for (const std::string& each : names)
    if (first.size() < kMostNames) first.push_back(each);
  const std::size_t more = std::size(names) - first.size();
  return fmt::format("{}{}", fmt::join(first, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

bool answers(const StoreMemberSeen& member) {
  return member.fault.empty();
}

void judge_members(const StoreSeen& seen, Findings& findings) {
  const bool some_answer = std::ranges::any_of(seen.asked, answers);
  for (const StoreMemberSeen& each : seen.asked) {
    const std::string took = fmt::format("etcd {}, answers in {} ms", each.version, each.took.count());
    if (!answers(each)) {
      findings.push_back({some_answer ? Level::warn : Level::fail, each.url, each.fault,
                          some_answer ? "start it; until then the agents ask the other members"
                                      : "start etcd; until then no request in the line of the lab starts"});
    } else if (each.took > kSlow) {
      findings.push_back({Level::warn, each.url, took,
                          "give etcd a fast disk and a short way to its other members: each place and each "
                          "start in the line asks it a few times"});
    } else {
      findings.push_back({Level::pass, each.url, took, ""});
    }
  }
}

Finding judge_version(const std::string& text) {
  const Version version = version_of(text);
  const std::string check = "version";
  const std::string update =
      fmt::format("update etcd to {}.{}.{} or later", kAdvised35[0], kAdvised35[1], kAdvised35[2]);
  if (version < kOldestEtcd)
    return {Level::fail, check, fmt::format("etcd {} is older than 3.4", text), update};
  const bool is_35 = version[0] == 3 && version[1] == 5;
  if (is_35 && version < kLosesUntil)
    return {Level::fail, check, fmt::format("etcd {} can lose data when it is killed", text), update};
  if (version < kAdvised34 || (is_35 && version < kAdvised35))
    return {Level::warn, check,
            fmt::format("etcd {} is older than what its makers advise (3.4.22, or 3.5.6)", text), update};
  return {Level::pass, check, fmt::format("etcd {}", text), ""};
}

void judge_versions(const StoreSeen& seen, Findings& findings) {
  std::set<std::string> versions;
  for (const StoreMemberSeen& each : seen.asked)
    if (answers(each)) versions.insert(each.version);
  for (const std::string& each : versions) findings.push_back(judge_version(each));
  if (versions.size() > 1)
    findings.push_back({Level::warn, "version", fmt::format("the members differ: {}", some_of(versions)),
                        "bring all members to one version"});
}

void judge_whole(const StoreSeen& seen, Findings& findings) {
  std::set<std::string> clusters;
  for (const StoreMemberSeen& each : seen.asked)
    if (answers(each) && !each.cluster.empty()) clusters.insert(each.cluster);
  const std::string check = "members";
  if (clusters.size() > 1)
    findings.push_back({Level::fail, check, "the URLs belong to different etcds, so there would be two lines",
                        "name members of one etcd only"});
  const std::size_t count = seen.members.size();
  if (count == 0) return;
  const std::size_t spare = (count - 1) / 2;
  if (count > seen.asked.size())
    findings.push_back({Level::warn, check,
                        fmt::format("etcd has {} members, and {} of them {} named", count, seen.asked.size(),
                                    seen.asked.size() == 1 ? "is" : "are"),
                        "name all of them, --store once for each, here and for each agent: an agent asks the "
                        "next one when one is down"});
  if (count == 1) {
    findings.push_back(
        {Level::pass, check, "1; while it is down, nothing in the line of the lab starts", ""});
  } else if (count % 2 == 0) {
    findings.push_back({Level::warn, check,
                        fmt::format("{}; etcd goes on while {} of them {} down, as with {}", count, spare,
                                    spare == 1 ? "is" : "are", count - 1),
                        fmt::format("have {} or {}", count - 1, count + 1)});
  } else {
    findings.push_back(
        {Level::pass, check,
         fmt::format("{}; etcd goes on while {} of them {} down", count, spare, spare == 1 ? "is" : "are"),
         ""});
  }
}

void judge_alarms(const StoreSeen& seen, Findings& findings) {
  for (const std::string& alarm : seen.alarms) {
    if (alarm == "NOSPACE") {
      findings.push_back(
          {Level::fail, "alarm", "etcd has no room left, and takes no new request (NOSPACE)",
           "let it forget and give the room back: `etcdctl compact REVISION`, `etcdctl defrag`, "
           "then `etcdctl alarm disarm`"});
    } else {
      findings.push_back(
          {Level::fail, "alarm", fmt::format("etcd has raised {}", alarm),
           "put an empty etcd in its place: the agents write all requests that wait there again, "
           "in a new order"});
    }
  }
}

void judge_space(const StoreSeen& seen, Findings& findings) {
  for (const StoreMemberSeen& each : seen.asked) {
    const auto& [bytes, quota, compacted] = each.gauges;
    if (!answers(each) || bytes == 0 || quota == 0) continue;
    const bool is_full = bytes >= quota / 2;
    findings.push_back(
        {is_full ? Level::warn : Level::pass, "space",
         fmt::format("{} of {} used at {}", bytes_for_people(bytes), bytes_for_people(quota), each.url),
         is_full ? "`etcdctl defrag` gives back what etcd has forgotten; at the limit etcd takes "
                   "no new request"
                 : ""});
  }
}

Finding judge_history(const StoreSeen& seen) {
  if (seen.rights.compacts)
    return {Level::pass, "history", "the agents tell etcd to forget what is older than an hour", ""};
  const bool forgets =
      std::ranges::any_of(seen.asked, [](const StoreMemberSeen& each) { return each.gauges.compacted > 1; });
  if (forgets) return {Level::pass, "history", "etcd forgets old changes by itself", ""};
  return {
      Level::warn, "history",
      fmt::format("this etcd lets only its root tell it to forget old changes, and not {}, so its file grows",
                  seen.user),
      "start etcd with --auto-compaction-mode=periodic --auto-compaction-retention=1h"};
}

Finding judge_users(const StoreSeen& seen) {
  const std::string check = "users";
  if (seen.lets_anybody_in)
    return {Level::warn, check, "etcd asks nobody who they are: whoever reaches it can change the line",
            "make a user for the agents; docs/machines.md has the lines"};
  if (seen.user.empty() && seen.wants_user)
    return {Level::fail, check, "etcd asks for a user and a password, and none are named",
            "name them: --store-user NAME --store-password-file FILE, here and for each agent"};
  if (seen.user.empty()) return {Level::pass, check, "etcd lets in only those who show it a certificate", ""};
  return {Level::pass, check, fmt::format("etcd asks for a password; the agents are its user {}", seen.user),
          ""};
}

void judge_rights(const StoreSeen& seen, Findings& findings) {
  const auto& rights = seen.rights;
  const std::string who = seen.user.empty() ? "the agents" : fmt::format("the user {}", seen.user);
  const std::string remedy =
      "give it the right to read and write below /berth/1/; docs/machines.md has the lines";
  const auto refused = [&](std::string_view what, const std::string& fault) {
    if (!fault.empty())
      findings.push_back({Level::fail, "rights", fmt::format("{} may not {}: {}", who, what, fault), remedy});
  };
  refused("read the line", rights.read);
  refused("write the line", rights.write);
  if (rights.read.empty() && rights.write.empty()) {
    if (!seen.user.empty() && !seen.lets_anybody_in && rights.writes_elsewhere)
      findings.push_back({Level::warn, "rights", fmt::format("{} may change keys that are not of Berth", who),
                          "take a user who may do no more than Berth needs; docs/machines.md has the lines"});
    else
      findings.push_back({Level::pass, "rights", fmt::format("{} may read and write the line", who), ""});
  }
  if (!rights.watch.empty())
    findings.push_back(
        {Level::fail, "watch", fmt::format("no word of changes: {}", rights.watch),
         "if a proxy stands between, let it pass answers that do not end; else look at etcd's log"});
}

void judge_machines(const StoreSeen& seen, Findings& findings) {
  if (seen.alive.empty()) {
    findings.push_back({Level::warn, "machines", "no agent was heard of in the last 30 s",
                        "start `berth serve --store` on each machine on which users ask for GPUs"});
    return;
  }
  std::vector<std::string> names;
  std::map<std::string, std::string> of_version;
  for (const auto& [name, version] : seen.alive) {
    names.push_back(name);
    of_version.try_emplace(version, name);
  }
  findings.push_back({Level::pass, "machines", fmt::format("{}: {}", names.size(), some_of(names)), ""});
  if (of_version.size() < 2) return;
  std::vector<std::string> examples;
  for (const auto& [version, name] : of_version) examples.push_back(fmt::format("{} on {}", version, name));
  findings.push_back({Level::warn, "machines", fmt::format("their Berths differ: {}", some_of(examples)),
                      "install one version on all machines"});
}

void judge_line(const StoreSeen& seen, const std::vector<std::string>& hosts, Findings& findings) {
  std::set<std::string> alive, silent, unknown, in_turn, as_they_came;
  for (const auto& [name, version] : seen.alive) alive.insert(name);
  for (const LabTicket& each : seen.tickets) {
    if (!alive.contains(each.home)) silent.insert(each.home);
    (each.turn ? in_turn : as_they_came).insert(each.home);
    for (const std::string& host : each.hosts)
      if (!hosts.empty() && std::ranges::find(hosts, host) == hosts.end()) unknown.insert(host);
  }
  findings.push_back({Level::pass, "line",
                      seen.waiting == 1 ? "1 request waits" : fmt::format("{} requests wait", seen.waiting),
                      ""});
  if (!in_turn.empty() && !as_they_came.empty())
    findings.push_back({Level::warn, "line",
                        fmt::format("{} let the user with fewer GPUs come first, and {} do not",
                                    some_of(in_turn), some_of(as_they_came)),
                        "give all machines the same `order` in the site file, and restart their agents"});
  if (!unknown.empty())
    findings.push_back(
        {Level::warn, "line",
         fmt::format("requests wait for hosts that this machine does not name: {}", some_of(unknown)),
         "name the hosts on all machines in the same way (`hosts` in the site file); give another "
         "lab an etcd of its own"});
  if (!silent.empty())
    findings.push_back(
        {Level::warn, "line",
         fmt::format("no agent runs where these requests were made: {}", some_of(silent)),
         fmt::format("start it there; the requests keep their places until then. If the machine "
                     "does not come back: `etcdctl del --prefix /berth/1/ticket/{}-`",
                     *silent.begin())});
}

}  // namespace

std::vector<Finding> judge_store(const StoreSeen& seen, const std::vector<std::string>& hosts) {
  Findings findings;
  judge_members(seen, findings);
  if (std::ranges::none_of(seen.asked, answers)) return findings;
  judge_versions(seen, findings);
  judge_whole(seen, findings);
  judge_alarms(seen, findings);
  judge_space(seen, findings);
  findings.push_back(judge_users(seen));
  if (findings.back().level == Level::fail) return findings;
  judge_rights(seen, findings);
  if (!seen.rights.read.empty()) return findings;
  findings.push_back(judge_history(seen));
  judge_machines(seen, findings);
  judge_line(seen, hosts, findings);
  return findings;
}

}  // namespace berth::lab_queue
