#include "berth/job/stored_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "berth/job/stored_request_fields.h"
#include "berth/request/typed_request.h"

namespace berth {
namespace {

struct OptionWriter {
  std::vector<std::string>& options;

  void operator()(std::string_view name, const std::string& value) const {
    if (!value.empty()) options.push_back(typed_option(name, value));
  }
  void operator()(std::string_view name, bool value) const {
    if (value) options.push_back(typed_option(name, ""));
  }
  void operator()(std::string_view name, const std::vector<std::string>& values) const {
    if (!values.empty()) (*this)(name, fmt::format("{}", fmt::join(values, ",")));
  }
};

}  // namespace

std::vector<std::string> typed_options(const StoredRequest& stored) {
  std::vector<std::string> options;
  for (const RequestField& row : request_fields()) {
    // Its conditions are written as those of another row.
    if (!row.record.exists() || !says(stored, row)) continue;
    // A share with promised memory says so by its memory alone.
    if (is_stored_in(&Request::shared, row) && stored.request.promise_bytes != 0) continue;
    std::ranges::move(typed_options(row, stored.request), std::back_inserter(options));
  }
  const OptionWriter write{options};
  fields_beside_rows(stored, write);
  return options;
}

bool StoredRequest::operator==(const StoredRequest& other) const {
  return typed_options(*this) == typed_options(other);
}

}  // namespace berth
