#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/request/request_fields.h"

namespace berth {

/// What a job asks for beside the rows of the table. The keys are the names of the options, so that
/// the options are written from this list too.
template <class Stored, class Fields>
void fields_beside_rows(Stored& stored, Fields& field) {
  field("note", stored.note);
  field("ids", stored.ids);
  field("mask", stored.mask);
  field("source", stored.source);
  field("anywhere", stored.anywhere);
  field("hosts", stored.hosts);
  field("host", stored.only);
  field("not-host", stored.without);
  field("folder", stored.folder);
  field("env", stored.env);
  field("near", stored.near);
}

inline bool is_row_of_count(const RequestField& row) {
  return is_stored_in(&Request::count, row);
}

/// Whether the user has said the row. The count may be said and be the usual one.
inline bool says(const StoredRequest& stored, const RequestField& row) {
  return is_row_of_count(row) ? stored.says_count : is_said(row, stored.request);
}

inline void fields_of_stored(const StoredRequest& stored, FieldWriter& field) {
  for (const RequestField& row : request_fields()) {
    if (says(stored, row)) field_of_row(row, stored.request, field);
  }
  fields_beside_rows(stored, field);
}

inline void fields_of_stored(StoredRequest& stored, FieldReader& field) {
  for (const RequestField& row : request_fields()) {
    if (field.key() != name_in(&RequestField::record, row)) continue;
    if (is_row_of_count(row)) stored.says_count = true;
    return field_of_row(row, stored.request, field);
  }
  fields_beside_rows(stored, field);
}

// Jobs and the events of their tasks as text, in the files of a spool.
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
