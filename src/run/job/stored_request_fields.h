#pragma once

#include <string_view>

#include "berth/job/stored_request.h"
#include "berth/request/request_record.h"

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

}  // namespace berth
