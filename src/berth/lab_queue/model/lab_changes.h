#pragma once

#include <cstdint>
#include <string>

#include "berth/lab_queue/model/lab_copy.h"
#include "berth/lab_queue/model/queue_entry.h"

// The changes of the store that an agent makes for a request. Each has the condition that the keys
// are as the agent knows them: its copy may be a moment old. `order`: of the ticket that is there;
// 0: there is none.
namespace berth::lab_agent {

lab_queue::LabChange put_ticket(const QueueEntry& entry, std::uint64_t order);

/// The one start. If the user has a limit, nobody else has started one of the user's since the
/// agent added up what the user has.
lab_queue::LabChange put_start(const QueueEntry& entry, const LabStart& start, std::uint64_t order,
                               const lab_queue::LabCopy& store);

/// Of a command that runs, where the store has lost it. `counts`: users have limits. Then an agent
/// that is adding up what this user has at this moment has to start over.
lab_queue::LabChange put_start_again(const QueueEntry& entry, const LabStart& start, std::uint64_t order,
                                     bool counts);

/// A start was made for a process that has lost that host before its command could start there. So
/// the request gets an entry again, and keeps its position on the hosts in whose queues it waits.
lab_queue::LabChange take_back(const QueueEntry& entry, const lab_queue::LabCopy& store);

/// What a request that has ended has there.
lab_queue::LabChange remove_all(const std::string& id);

}  // namespace berth::lab_agent
