#include "berth/lab_queue/model/lab_tickets.h"

#include <algorithm>
#include <cstddef>
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

const LabTickets::KeptTicket* LabTickets::kept(std::string_view id) const {
  const auto found = tickets_.find(id);
  return found == tickets_.end() ? nullptr : &found->second;
}

void LabTickets::count(const KeptTicket& kept, int by) {
  with_number_ += kept.number ? by : 0;
  with_most_ += kept.most ? by : 0;
}

void LabTickets::put(LabTicket ticket) {
  const std::string id = std::exchange(ticket.id, "");
  const std::vector<std::string> hosts = std::exchange(ticket.hosts, {});
  if (const auto found = tickets_.find(id); found != tickets_.end()) {
    KeptTicket& kept = found->second;
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
  const KeptTicket& kept = tickets_.emplace(id, KeptTicket{std::move(ticket), &group}).first->second;
  ++homes_[kept.home];
  count(kept, 1);
  Lane& lane = group.lanes[{kept.lane, kept.uid}];
  lane.insert(std::ranges::lower_bound(lane, kept.order, {}, &KeptTicket::order), &kept);
}

void LabTickets::remove(std::string_view id) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end()) return;
  const KeptTicket& kept = found->second;
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
  const KeptTicket* found = kept(id);
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

namespace {

bool has_name(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

LabOpenings::LabOpenings(const LabTickets& queue, const std::set<std::string, std::less<>>& absent,
                         const GpusByUser& has)
    : queue_(queue), absent_(absent) {
  if (queue.with_number_ > 0) rank_by_number(has);
  if (queue.with_most_ > 0) skip_limited(has);
}

std::vector<const LabTickets::KeptTicket*> LabOpenings::ranked() const {
  std::vector<const KeptTicket*> all;
  for (const auto& [id, kept] : queue_.tickets_) all.push_back(&kept);
  std::ranges::sort(all, {}, [this](const KeptTicket* each) { return rank_of(*each); });
  return all;
}

void LabOpenings::rank_by_number(const GpusByUser& has) {
  const std::vector<const KeptTicket*> came = ranked();  // without ranks so far: as they came
  std::vector<Wish> wishes;
  for (const KeptTicket* each : came)
    wishes.push_back({.id = {},
                      .uid = each->uid,
                      .count = each->gpus,
                      .number = each->number,
                      .skipped = absent_.contains(each->home)});
  for (const std::size_t at : queue_order(wishes, has, 0)) ranks_.emplace(came[at], ranks_.size());
}

// Of one user's requests, only as many wait on hosts as may start together. A host would grant GPUs
// to further ones, and these would have to give the GPUs back.
void LabOpenings::skip_limited(const GpusByUser& has) {
  auto taken = has.in_all;
  for (const KeptTicket* each : ranked()) {
    if (absent_.contains(each->home)) continue;
    auto& of_user = taken[each->uid];
    if (each->most && of_user + each->gpus > *each->most)
      over_limit_.emplace(each, of_user);
    else
      of_user += each->gpus;
  }
}

bool LabOpenings::is_skipped(const KeptTicket& ticket) const {
  return absent_.contains(ticket.home) || over_limit_.contains(&ticket);
}

std::optional<std::uint64_t> LabOpenings::taken_of_limit(std::string_view id) const {
  const auto found = over_limit_.find(queue_.kept(id));
  if (found == over_limit_.end()) return std::nullopt;
  return found->second;
}

std::uint64_t LabOpenings::rank_of(const KeptTicket& ticket) const {
  return ranks_.empty() ? ticket.order : ranks_.at(&ticket);
}

std::size_t LabOpenings::before(const LabTickets::Lane& lane, const KeptTicket& own) const {
  if (ranks_.empty())
    return static_cast<std::size_t>(std::ranges::lower_bound(lane, own.order, {}, &KeptTicket::order) -
                                    lane.begin());
  const std::uint64_t rank = rank_of(own);
  return static_cast<std::size_t>(
      std::ranges::count_if(lane, [&](const KeptTicket* each) { return rank_of(*each) < rank; }));
}

std::set<const LabTickets::Group*> LabOpenings::sharing_host_with(const LabTickets::Group& group) const {
  std::set<const LabTickets::Group*> sharing;
  for (const std::string& host : group.names) {
    const auto& named = queue_.by_host_.find(host)->second;
    sharing.insert(named.begin(), named.end());
  }
  return sharing;
}

std::size_t LabOpenings::position(std::string_view id) const {
  const KeptTicket* own = queue_.kept(id);
  if (own == nullptr) return 0;
  std::size_t position = 0;
  for (const LabTickets::Group* group : sharing_host_with(*own->group))
    for (const auto& [number, lane] : group->lanes) position += before(lane, *own);
  return position;
}

// Finds the positions of all requests in one pass. One pass for each request would take too long in
// a long queue.
LabOrder LabOpenings::order() const {
  LabOrder order;
  std::map<const LabTickets::Group*, std::set<const LabTickets::Group*>> sharing;
  std::map<const LabTickets::Group*, std::size_t> earlier;
  for (const KeptTicket* each : ranked()) {
    if (each->joined.empty()) {
      ++order.outside;
    } else if (!each->origin.empty()) {
      const auto [found, is_new] = sharing.try_emplace(each->group);
      if (is_new) found->second = sharing_host_with(*each->group);
      std::size_t position = 1;
      for (const LabTickets::Group* group : found->second)
        if (const auto those = earlier.find(group); those != earlier.end()) position += those->second;
      order.standing.push_back({each->origin, position});
    }
    ++earlier[each->group];
  }
  return order;
}

/// The room that the earlier tickets of a lane take in the queue of one host.
class LabOpenings::RoomTaken {
 public:
  void add(const Spot& spot) {
    auto user = std::ranges::find(of_users_, spot.uid, &Taken::uid);
    if (user == of_users_.end()) user = of_users_.insert(user, Taken{spot.uid});
    ++user->of_own;
    if (user->of_others == kLabWindowOfUser || (!spot.stands && !spot.awaited)) return;
    ++user->of_others;
    ++of_all_;
  }
  bool has_room(std::uint32_t uid) const {
    const auto found = std::ranges::find(of_users_, uid, &Taken::uid);
    const Taken user = found == of_users_.end() ? Taken{} : *found;
    return of_all_ - user.of_others + user.of_own < kLabWindow;
  }
  /// Nobody has room any more: what a user takes from others is part of what the user takes.
  bool is_full() const { return of_all_ >= kLabWindow; }

 private:
  struct Taken {
    std::uint32_t uid = 0;
    std::size_t of_own = 0;     ///< from its own later requests
    std::size_t of_others = 0;  ///< from those of any other user
  };
  std::vector<Taken> of_users_{};  // of few users: faster than a map
  std::size_t of_all_ = 0;
};

LabOpenings::Spots LabOpenings::with_room(Spots spots) {
  std::ranges::sort(spots, {}, &Spot::rank);
  RoomTaken taken;
  Spots inside;
  for (const Spot& each : spots) {
    if (taken.is_full()) break;
    if (taken.has_room(each.uid)) inside.push_back(each);
    taken.add(each);
  }
  return inside;
}

const LabOpenings::Window& LabOpenings::window_of(const std::string& host) {
  const auto [found, is_new] = windows_.try_emplace(host);
  Window& window = found->second;
  if (!is_new) return window;
  for (const LabTickets::Group* group : queue_.by_host_.find(host)->second) {
    for (const auto& [key, lane] : group->lanes) {
      Spots& spots = window[key.first];
      std::size_t taken = 0;
      for (const KeptTicket* each : lane) {
        if (is_skipped(*each)) continue;
        spots.push_back({rank_of(*each), each->uid, has_name(each->joined, host), each->awaited});
        // The requests of a lane are in the order in which they came.
        if (++taken == kLabWindow && ranks_.empty()) break;
      }
    }
  }
  for (auto& [number, spots] : window) spots = with_room(std::move(spots));
  return window;
}

std::vector<std::string> LabOpenings::hosts_to_join(std::string_view id) {
  const KeptTicket* own = queue_.kept(id);
  if (own == nullptr || over_limit_.contains(own)) return {};
  const std::uint64_t rank = rank_of(*own);
  const auto is_before = [&](const Spot& each) { return each.rank < rank; };
  std::vector<std::string> open;
  for (const std::string& host : own->group->hosts) {
    bool all_stand = true;
    RoomTaken taken;
    for (const auto& [number, spots] : window_of(host)) {
      const auto end = std::ranges::find_if_not(spots, is_before);
      all_stand = all_stand && std::all_of(spots.begin(), end,
                                           [](const Spot& each) { return each.stands || !each.awaited; });
      if (number == own->lane)
        std::for_each(spots.begin(), end, [&taken](const Spot& each) { taken.add(each); });
    }
    if (all_stand && taken.has_room(own->uid)) open.push_back(host);
  }
  return open;
}

}  // namespace berth
