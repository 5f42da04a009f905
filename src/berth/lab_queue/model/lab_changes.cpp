#include "berth/lab_queue/model/lab_changes.h"

namespace berth::lab_agent {
namespace {

using lab_queue::key_of;
using lab_queue::LabChange;
using lab_queue::LabCondition;
using lab_queue::LabCopy;

std::string ticket_key(const QueueEntry& entry) {
  return key_of(lab_queue::kLabTickets, entry.kept.id);
}
std::string start_key(const QueueEntry& entry) {
  return key_of(lab_queue::kLabStarts, entry.kept.id);
}
std::string user_key(const QueueEntry& entry) {
  return key_of(lab_queue::kLabUsers, std::to_string(entry.kept.uid));
}

}  // namespace

LabChange put_ticket(const QueueEntry& entry, std::uint64_t order) {
  LabChange put{.conditions = {{ticket_key(entry), order}}};
  if (order == 0) put.conditions.push_back({start_key(entry), 0});
  put.puts.push_back({ticket_key(entry), entry.ticket()});
  return put;
}

LabChange put_start(const QueueEntry& entry, const LabStart& start, std::uint64_t order,
                    const LabCopy& store) {
  LabChange put = put_start_again(entry, start, order, entry.kept.most.has_value());
  if (!entry.kept.most) return put;
  // An agent on another machine may start one of the same user at this moment.
  const std::uint64_t seen = store.revisions(user_key(entry)).changed;
  put.conditions.push_back({user_key(entry), seen, LabCondition::Of::changed});
  return put;
}

LabChange put_start_again(const QueueEntry& entry, const LabStart& start, std::uint64_t order, bool counts) {
  LabChange put{.conditions = {{ticket_key(entry), order}, {start_key(entry), 0}},
                .puts = {{start_key(entry), start}}};
  if (order != 0) put.removed = {ticket_key(entry)};
  if (counts) put.puts.push_back({user_key(entry), entry.kept.id});
  return put;
}

LabChange take_back(const QueueEntry& entry, const LabCopy& store) {
  const std::uint64_t made = store.revisions(start_key(entry)).created;
  return {.conditions = {{start_key(entry), made}, {ticket_key(entry), 0}},
          .puts = {{ticket_key(entry), entry.ticket()}},
          .removed = {start_key(entry)}};
}

LabChange remove_all(const std::string& id) {
  return {.removed = {key_of(lab_queue::kLabTickets, id), key_of(lab_queue::kLabStarts, id)}};
}

}  // namespace berth::lab_agent
