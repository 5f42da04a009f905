#include "berth/lab_queue/model/lab_openings.h"

#include <algorithm>
#include <utility>

namespace berth {
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

std::vector<const LabTickets::Kept*> LabOpenings::ranked() const {
  std::vector<const Kept*> all;
  for (const auto& [id, kept] : queue_.tickets_) all.push_back(&kept);
  std::ranges::sort(all, {}, [this](const Kept* each) { return rank_of(*each); });
  return all;
}

void LabOpenings::rank_by_number(const GpusByUser& has) {
  const std::vector<const Kept*> came = ranked();  // without ranks so far: as they came
  std::vector<Wish> wishes;
  for (const Kept* each : came)
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
  for (const Kept* each : ranked()) {
    if (absent_.contains(each->home)) continue;
    auto& of_user = taken[each->uid];
    if (each->most && of_user + each->gpus > *each->most)
      over_limit_.emplace(each, of_user);
    else
      of_user += each->gpus;
  }
}

bool LabOpenings::is_skipped(const Kept& ticket) const {
  return absent_.contains(ticket.home) || over_limit_.contains(&ticket);
}

std::optional<std::uint64_t> LabOpenings::taken_of_limit(std::string_view id) const {
  const auto found = over_limit_.find(queue_.kept(id));
  if (found == over_limit_.end()) return std::nullopt;
  return found->second;
}

std::uint64_t LabOpenings::rank_of(const Kept& ticket) const {
  return ranks_.empty() ? ticket.order : ranks_.at(&ticket);
}

std::size_t LabOpenings::before(const LabTickets::Lane& lane, const Kept& own) const {
  if (ranks_.empty())
    return static_cast<std::size_t>(std::ranges::lower_bound(lane, own.order, {}, &Kept::order) -
                                    lane.begin());
  const std::uint64_t rank = rank_of(own);
  return static_cast<std::size_t>(
      std::ranges::count_if(lane, [&](const Kept* each) { return rank_of(*each) < rank; }));
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
  const Kept* own = queue_.kept(id);
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
  for (const Kept* each : ranked()) {
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

const LabOpenings::Window& LabOpenings::window_of(const std::string& host) {
  const auto [found, is_new] = windows_.try_emplace(host);
  Window& window = found->second;
  if (!is_new) return window;
  for (const LabTickets::Group* group : queue_.by_host_.find(host)->second) {
    for (const auto& [number, lane] : group->lanes) {
      std::vector<Spot>& spots = window[number];
      std::size_t taken = 0;
      for (const Kept* each : lane) {
        if (is_skipped(*each)) continue;
        spots.push_back({rank_of(*each), has_name(each->joined, host)});
        // The requests of a lane are in the order in which they came.
        if (++taken == kLabWindow && ranks_.empty()) break;
      }
    }
  }
  for (auto& [number, spots] : window) {
    std::ranges::sort(spots, {}, &Spot::rank);
    spots.resize(std::min(spots.size(), kLabWindow));
  }
  return window;
}

std::vector<std::string> LabOpenings::hosts_to_join(std::string_view id) {
  const Kept* own = queue_.kept(id);
  if (own == nullptr || over_limit_.contains(own)) return {};
  const std::uint64_t rank = rank_of(*own);
  const auto is_before = [&](const Spot& each) { return each.rank < rank; };
  std::vector<std::string> open;
  for (const std::string& host : own->group->hosts) {
    bool all_stand = true;
    std::size_t earlier = 0;
    for (const auto& [number, spots] : window_of(host)) {
      const auto end = std::ranges::find_if_not(spots, is_before);
      all_stand = all_stand && std::all_of(spots.begin(), end, std::mem_fn(&Spot::stands));
      if (number == own->lane) earlier = static_cast<std::size_t>(end - spots.begin());
    }
    if (all_stand && earlier < kLabWindow) open.push_back(host);
  }
  return open;
}

}  // namespace berth
