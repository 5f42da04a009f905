#include "berth/command/output.h"

#include <utility>

#include <fmt/format.h>

#include "berth/command/environment.h"
#include "berth/view/text.h"

namespace berth::command {

int report(const Result<Output>& result) {
  if (!result) {
    std::string text = result.error().message;
    while (text.ends_with('\n')) text.pop_back();
    write_error(fmt::format("berth: {}\n", text));
    return outcome_of(result.error().code).exit_status;
  }
  if (!result->err.empty()) write_error(result->err);
  if (const auto written = write_all(1, view::for_terminal(result->out)); !written) {
    Error error = written.error();
    if (!result->done.empty()) error.message += fmt::format("; all the same, {}", result->done);
    return report(std::unexpected(std::move(error)));
  }
  return result->status;
}

}  // namespace berth::command
