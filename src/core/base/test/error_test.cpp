#include "berth/base/error.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <rapidcheck.h>

namespace berth::error_test {
namespace {

TEST_CASE("every error code has its own row, whose statuses are the documented ones") {
  struct Row {
    ErrorCode code;
    int exit_status;
  };
  for (const Row& row :
       {Row{ErrorCode::failure, 1}, Row{ErrorCode::usage, 2}, Row{ErrorCode::no_driver, 69},
        Row{ErrorCode::impossible, 69}, Row{ErrorCode::not_now, 75}, Row{ErrorCode::timed_out, 124}}) {
    CHECK(outcome_of(row.code).code == row.code);
    CHECK(outcome_of(row.code).exit_status == row.exit_status);
  }
}

TEST_CASE("context puts what was being done in front") {
  CHECK(context(Error{ErrorCode::failure, fmt::format("No {} file {:.1f}", "such", 2.0)}, "reading X")
            .message == "reading X: No such file 2.0");
  CHECK(rc::check("context keeps the code", [](std::string text) {
    RC_ASSERT(context(Error{ErrorCode::not_now, text}, "x").code == ErrorCode::not_now);
  }));
}

}  // namespace
}  // namespace berth::error_test
