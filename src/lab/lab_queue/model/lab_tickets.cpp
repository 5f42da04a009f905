#include "berth/lab_queue/model/lab_tickets.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace berth {

std::string id_of(std::string_view home, std::string_view mark) {
  return fmt::format("{}-{}", home, mark);
}

std::string_view home_of(std::string_view id) {
  const std::size_t hyphen = id.rfind('-');
  return hyphen == std::string_view::npos ? "" : id.substr(0, hyphen);
}

LabTickets::Group& LabTickets::group_of(const std::vector<std::string>& hosts) {
  const auto [found, is_new] = groups_.try_emplace(hosts);
  Group& group = found->second;
  if (!is_new) return group;
  group.hosts = hosts;
  group.names.insert(hosts.begin(), hosts.end());
  for (const std::string& host : group.names) by_host_[host].push_back(&group);
  return group;
}

const LabTickets::Kept* LabTickets::kept(std::string_view id) const {
  const auto found = tickets_.find(id);
  return found == tickets_.end() ? nullptr : &found->second;
}

void LabTickets::count(const Kept& kept, int by) {
  with_number_ += kept.number ? by : 0;
  with_most_ += kept.most ? by : 0;
}

void LabTickets::put(LabTicket ticket) {
  const std::string id = std::exchange(ticket.id, "");
  const std::vector<std::string> hosts = std::exchange(ticket.hosts, {});
  if (const auto found = tickets_.find(id); found != tickets_.end()) {
    Kept& kept = found->second;
    const bool stays = kept.order == ticket.order && kept.home == ticket.home && kept.lane == ticket.lane &&
                       kept.uid == ticket.uid && kept.group->hosts == hosts;
    if (stays) {
      count(kept, -1);
      static_cast<LabTicket&>(kept) = std::move(ticket);
      return count(kept, 1);
    }
    remove(id);
  }
  Group& group = group_of(hosts);
  const Kept& kept = tickets_.emplace(id, Kept{std::move(ticket), &group}).first->second;
  ++homes_[kept.home];
  count(kept, 1);
  Lane& lane = group.lanes[{kept.lane, kept.uid}];
  lane.insert(std::ranges::lower_bound(lane, kept.order, {}, &Kept::order), &kept);
}

void LabTickets::remove(std::string_view id) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end()) return;
  const Kept& kept = found->second;
  if (const auto home = homes_.find(kept.home); --home->second == 0) homes_.erase(home);
  count(kept, -1);
  Group& group = *kept.group;
  const auto lane = group.lanes.find({kept.lane, kept.uid});
  // In a working store each order belongs to one ticket. In a broken store several tickets may
  // share one, and none of them may stay behind.
  std::erase(lane->second, &kept);
  if (lane->second.empty()) group.lanes.erase(lane);
  tickets_.erase(found);
  if (!group.lanes.empty()) return;
  for (const std::string& host : group.names) {
    const auto named = by_host_.find(host);
    std::erase(named->second, &group);
    if (named->second.empty()) by_host_.erase(named);
  }
  groups_.erase(group.hosts);
}

std::optional<LabTicket> LabTickets::find(std::string_view id) const {
  const Kept* found = kept(id);
  if (found == nullptr) return std::nullopt;
  auto ticket = static_cast<const LabTicket&>(*found);
  ticket.id = id;
  ticket.hosts = found->group->hosts;
  return ticket;
}

std::vector<std::string> LabTickets::of_home(std::string_view home) const {
  std::vector<std::string> ids;
  if (!homes_.contains(home)) return ids;
  for (const auto& [id, kept] : tickets_)
    if (kept.home == home) ids.push_back(id);
  return ids;
}

std::vector<Numbered> LabTickets::numbers() const {
  std::vector<Numbered> numbers;
  if (with_number_ == 0) return numbers;
  for (const auto& [id, kept] : tickets_)
    if (kept.number) numbers.push_back({kept.uid, kept.gpus, *kept.number, false});
  return numbers;
}

}  // namespace berth
