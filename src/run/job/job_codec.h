#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/job/task_standing.h"

// Jobs and the events of their tasks as text, in the files of a spool.
namespace berth {

std::string encode_job(const Job& job);
/// Error: `failure`, as read_record.
Result<Job> decode_job(std::string_view text);

/// The text of the event, to be appended to the file.
std::string encode_event(const TaskEvent& event);
/// The same for events of which all have happened, or none: to be appended in one write.
std::string encode_events(std::span<const TaskEvent> events);
/// What to write before an event if the text before does not end with a whole event. That event was
/// cut off, and an end of line alone could complete it.
inline constexpr std::string_view kSpoiled = "~\n";
/// All events that can be read. An event that was cut off (by a kill, a full disk) has not
/// happened, and neither have those that were written with it.
std::vector<TaskEvent> decode_events(std::string_view text);

}  // namespace berth
