#include "berth/machines/host.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"

namespace berth {

unsigned lane_of(unsigned gpus, const QueueRules& rules) {
  return rules.backfill ? gpus : 0;
}

std::string origin_of(std::string_view machine, std::int64_t pid) {
  return fmt::format("{}:{}", machine, pid);
}

namespace {

constexpr std::size_t kBareColumns = 5;
constexpr std::size_t kLongestName = 96;
constexpr std::uint64_t kMostMebibytes = std::uint64_t{1} << 30U;
// A driver holds so much of a GPU that nobody uses, and tells such a load of one at rest.
constexpr std::uint64_t kAtRestBytes = std::uint64_t{512} << 20U;
constexpr unsigned kAtRestPercent = 3;

/// The columns of a line; the last keeps what is left, because the output quotes nothing.
std::optional<std::array<std::string_view, kBareColumns>> columns_of(std::string_view line) {
  std::array<std::string_view, kBareColumns> columns;
  for (std::size_t i = 0; i + 1 < kBareColumns; ++i) {
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    columns[i] = trimmed(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  columns.back() = trimmed(line);
  return columns;
}

Reading<std::uint64_t> bare_bytes(std::string_view text) {
  const auto mebibytes = number_from_text<std::uint64_t>(text);
  return mebibytes && *mebibytes <= kMostMebibytes ? Reading<std::uint64_t>(*mebibytes << 20U) : std::nullopt;
}

std::optional<BareDevice> bare_device_from(std::string_view line) {
  const auto columns = columns_of(line);
  const auto index = columns ? number_from_text<unsigned>((*columns)[0]) : std::nullopt;
  if (!index || *index >= kMostBareDevices || columns->back().size() > kLongestName) return std::nullopt;
  BareDevice device{.index = *index, .name = {}};
  device.memory_total_bytes = bare_bytes((*columns)[1]);
  device.memory_used_bytes = bare_bytes((*columns)[2]);
  const auto load = number_from_text<unsigned>((*columns)[3]);
  if (load && *load <= 100) device.utilization_percent = *load;
  if (!columns->back().starts_with('[')) device.name = printable(columns->back());
  return device;
}

}  // namespace

Result<std::vector<BareDevice>> bare_devices_from_csv(std::string_view csv) {
  const auto refused = [](std::size_t line) {
    return fail(ErrorCode::failure, "line {} of its nvidia-smi is no line about a GPU", line);
  };
  if (csv.size() > kLongestBareAnswer) return fail(ErrorCode::failure, "its nvidia-smi says too much");
  std::vector<BareDevice> devices;
  while (!csv.empty()) {
    const std::size_t newline = std::min(csv.find('\n'), csv.size());
    auto device = bare_device_from(csv.substr(0, newline));
    if (!device || (!devices.empty() && device->index <= devices.back().index))
      return refused(devices.size() + 1);
    devices.push_back(*std::move(device));
    csv.remove_prefix(std::min(newline + 1, csv.size()));
  }
  if (devices.empty()) return fail(ErrorCode::failure, "its nvidia-smi lists no GPU");
  return devices;
}

Reading<bool> is_in_use(const BareDevice& device) {
  if (!device.memory_used_bytes && !device.utilization_percent) return std::nullopt;
  return device.memory_used_bytes.value_or(0) > kAtRestBytes ||
         device.utilization_percent.value_or(0) >= kAtRestPercent;
}

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

namespace {

class QueueMerger {
 public:
  explicit QueueMerger(const LabOrder& order) {
    for (const LabStanding& each : order.standing)
      spots_.try_emplace(each.origin, Spot{spots_.size() + 1, each.position});
  }

  void add(const Host& host) {
    std::size_t rank = 0;  // of the last one so far in the lab queue
    for (const Standing& waiter : host.report->waiters) {
      const auto spot = spots_.find(waiter.ticket.origin);
      const bool is_in_order = spot != spots_.end();
      if (is_in_order) rank = spot->second.rank;
      FoundWaiter found{{&host, &waiter, {&host}}, rank};
      if (is_in_order) found.waiter.position = spot->second.position;
      put(std::move(found));
    }
  }

  std::vector<LabWaiter> in_order() && {
    std::ranges::stable_sort(found_, {}, [](const FoundWaiter& each) {
      return std::pair(each.rank, !each.waiter.position.has_value());
    });
    std::vector<LabWaiter> waiters;
    for (FoundWaiter& each : found_) waiters.push_back(std::move(each.waiter));
    return waiters;
  }

 private:
  struct Spot {
    std::size_t rank, position;
  };
  struct FoundWaiter {
    LabWaiter waiter;
    std::size_t rank;
  };

  void put(FoundWaiter found) {
    if (const auto from = origin_and_user(found.waiter.nearest->ticket)) {
      const auto [seen, is_new] = seen_.try_emplace(*from, found_.size());
      if (!is_new) return stand_there_too(found_[seen->second], found);
    }
    found_.push_back(std::move(found));
  }

  static void stand_there_too(FoundWaiter& known, const FoundWaiter& there) {
    known.waiter.hosts.push_back(there.waiter.at);
    const auto key = [](const FoundWaiter& each) {
      return std::pair(each.waiter.nearest->starts_at_s.value_or(kNever), each.waiter.nearest->position);
    };
    if (key(there) >= key(known)) return;
    known.waiter.at = there.waiter.at;
    known.waiter.nearest = there.waiter.nearest;
    known.rank = there.rank;
  }

  std::map<std::string, Spot, std::less<>> spots_;
  std::map<std::pair<std::string, std::string>, std::size_t> seen_;
  std::vector<FoundWaiter> found_;
};

}  // namespace

std::optional<std::pair<std::string, std::string>> origin_and_user(const Ticket& ticket) {
  if (ticket.origin.empty()) return std::nullopt;
  return std::pair(ticket.origin, ticket.user);
}

std::vector<LabWaiter> merged_queue(const Hosts& hosts, const LabOrder& order) {
  QueueMerger merger(order);
  for (const auto& host : hosts)
    if (host->report) merger.add(*host);
  return std::move(merger).in_order();
}

}  // namespace berth
