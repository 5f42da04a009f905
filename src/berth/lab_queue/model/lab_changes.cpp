#include "berth/lab_queue/model/lab_changes.h"

namespace berth::lab_agent {
namespace {

using lab_queue::key_of;
using lab_queue::LabChange;
using lab_queue::LabCondition;
using lab_queue::LabCopy;

std::string ticket_key(const QueueEntry& place) {
  return key_of(lab_queue::kLabTickets, place.kept.id);
}
std::string start_key(const QueueEntry& place) {
  return key_of(lab_queue::kLabStarts, place.kept.id);
}
std::string user_key(const QueueEntry& place) {
  return key_of(lab_queue::kLabUsers, std::to_string(place.kept.uid));
}

}  // namespace

LabChange put_ticket(const QueueEntry& place, std::uint64_t order) {
  LabChange put{.conditions = {{ticket_key(place), order}}};
  if (order == 0) put.conditions.push_back({start_key(place), 0});
  put.puts.push_back({ticket_key(place), place.ticket()});
  return put;
}

LabChange put_start(const QueueEntry& place, const LabStart& start, std::uint64_t order,
                    const LabCopy& store) {
  LabChange put = put_start_again(place, start, order, place.kept.most.has_value());
  if (!place.kept.most) return put;
  // An agent on another machine may start one of the same user at this moment.
  const std::uint64_t seen = store.revisions(user_key(place)).changed;
  put.conditions.push_back({user_key(place), seen, LabCondition::Of::changed});
  return put;
}

LabChange put_start_again(const QueueEntry& place, const LabStart& start, std::uint64_t order, bool counts) {
  LabChange put{.conditions = {{ticket_key(place), order}, {start_key(place), 0}},
                .puts = {{start_key(place), start}}};
  if (order != 0) put.removed = {ticket_key(place)};
  if (counts) put.puts.push_back({user_key(place), place.kept.id});
  return put;
}

LabChange take_back(const QueueEntry& place, const LabCopy& store) {
  const std::uint64_t made = store.revisions(start_key(place)).created;
  return {.conditions = {{start_key(place), made}, {ticket_key(place), 0}},
          .puts = {{ticket_key(place), place.ticket()}},
          .removed = {start_key(place)}};
}

LabChange remove_all(const std::string& id) {
  return {.removed = {key_of(lab_queue::kLabTickets, id), key_of(lab_queue::kLabStarts, id)}};
}

}  // namespace berth::lab_agent
