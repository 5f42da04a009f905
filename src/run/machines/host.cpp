#include "berth/machines/host.h"

#include <algorithm>
#include <map>
#include <utility>

#include "berth/machines/merged_queue.h"

namespace berth {
namespace {

/// With the verdict on each. Split GPUs have none.
template <class Use>
void each_judged(const HostReport& report, Use use) {
  auto verdict = report.verdicts.begin();
  for (const Device& device : report.facts.snapshot.devices) {
    if (is_split(device) || verdict == report.verdicts.end()) continue;
    use(device, *verdict++);
  }
}

/// Of a ticket, or of what is not listed.
template <class Owned>
std::string owner_of(const Owned& owned) {
  return owned.user.empty() ? "uid " + std::to_string(owned.uid) : owned.user;
}

/// Cards of one name come with different memory. What the driver tells of it differs by some MiB
/// from card to card, so it is rounded: as a rule a little is missing to a whole GiB.
using ModelKey = std::pair<std::string, std::uint64_t>;
ModelKey model_key(const Device& device) {
  return {device.name, ((device.memory.total_bytes.value_or(0) >> 29U) + 1) >> 1U};
}

/// A host can make names up, and everybody is told of each.
constexpr std::size_t kMostModelsOfHost = 32;
constexpr std::size_t kMostUsersOfHost = 256;
constexpr std::size_t kMostModels = 200;  // on all hosts
constexpr std::size_t kMostUsers = 2000;
constexpr const char* kOther = "other";

/// The name, or kOther where a host has told of `most` before.
template <class Name>
const Name& one_of_few(const Name& name, const Name& other, std::size_t most, std::set<Name>& names) {
  if (names.contains(name)) return name;
  if (names.size() < most) return *names.insert(name).first;
  return other;
}

void add_models(const Host& host, std::map<ModelKey, ModelTotal>& models) {
  const ModelKey other{kOther, 0};
  std::set<ModelKey> names;
  std::set<ModelKey> with_free;
  each_judged(*host.report, [&](const Device& device, const Verdict& verdict) {
    const ModelKey key = one_of_few(model_key(device), other, kMostModelsOfHost, names);
    ModelTotal& model = models[key];
    if (model.devices++ == 0) {
      model.name = key.first;
      if (key != other) model.memory_total_bytes = device.memory.total_bytes;
    }
    if (!host.is_up() || !verdict.free()) return;
    ++model.free;
    if (with_free.insert(key).second) ++model.hosts_with_free;
  });
}

/// `seen`: the requests that another host has told of.
void add_users(const Host& host, std::map<std::string, UserTotal>& users,
               std::set<std::pair<std::string, std::string>>& seen) {
  const std::string other = kOther;
  std::set<std::string> names;
  for (const Ticket& ticket : host.report->ledger.tickets) {
    UserTotal& user = users[one_of_few(owner_of(ticket), other, kMostUsersOfHost, names)];
    if (ticket.phase == TicketPhase::waiting) {
      const auto from = origin_and_user(ticket);
      if (!from || seen.insert(*from).second) ++user.waiting;
      continue;
    }
    ++user.leases;
    user.devices += ticket.devices.size();
  }
  for (const Unlisted& rest : host.report->ledger.unlisted) {
    UserTotal& user = users[one_of_few(owner_of(rest), other, kMostUsersOfHost, names)];
    user.leases += rest.leases;
    user.waiting += rest.waiting;
  }
}

/// The rows after the first `most` as one.
template <class Row, class Add>
void fold(std::vector<Row>& rows, std::size_t most, Row other, Add add) {
  if (rows.size() <= most) return;
  for (std::size_t i = most - 1; i < rows.size(); ++i) add(other, rows[i]);
  rows.resize(most - 1);
  rows.push_back(std::move(other));
}

}  // namespace

Totals totals_of(const Hosts& hosts) {
  std::map<ModelKey, ModelTotal> models;
  std::map<std::string, UserTotal> users;
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& host : hosts) {
    if (!host->report) continue;
    add_models(*host, models);
    add_users(*host, users, seen);
  }
  Totals totals;
  for (auto& [key, model] : models) {
    totals.devices += model.devices;
    totals.free += model.free;
    totals.models.push_back(std::move(model));
  }
  for (auto& [name, user] : users) {
    user.user = name;
    totals.users.push_back(std::move(user));
  }
  std::ranges::stable_sort(totals.models, std::ranges::greater(), &ModelTotal::free);
  std::ranges::stable_sort(totals.users, std::ranges::greater(), &UserTotal::devices);
  fold(totals.models, kMostModels, ModelTotal{.name = kOther, .memory_total_bytes = {}},
       [](ModelTotal& sum, const ModelTotal& each) {
         sum.devices += each.devices;
         sum.free += each.free;
         sum.hosts_with_free = std::max(sum.hosts_with_free, each.hosts_with_free);
       });
  fold(totals.users, kMostUsers, UserTotal{.user = kOther}, [](UserTotal& sum, const UserTotal& each) {
    sum.devices += each.devices;
    sum.leases += each.leases;
    sum.waiting += each.waiting;
  });
  return totals;
}

std::vector<HostDevice> matching(const Hosts& hosts, const Expression& expression) {
  std::vector<HostDevice> found;
  for (const auto& host : hosts) {
    if (!host->report) continue;
    each_judged(*host->report, [&](const Device& device, const Verdict& verdict) {
      if (!expression.unmet_by({device, verdict.free_bytes, known_host(host->report->facts)}))
        found.push_back({host.get(), &device});
    });
  }
  return found;
}

}  // namespace berth
