#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace berth {

/// What went wrong, as far as a program needs to know it to react. There are no other codes.
/// `outcome_of()` says what each code means as an exit status, an HTTP status and a Python
/// exception.
enum class ErrorCode {
  failure,     ///< something broke: a file, a system call, a peer
  usage,       ///< the request itself is wrong, whatever the machine
  no_driver,   ///< there is no driver, or it does not work
  impossible,  ///< nothing on this machine can ever satisfy the request
  not_now,     ///< it could be satisfied, but not at this moment
  timed_out,   ///< a wait ran out
};

struct Error {
  ErrorCode code = ErrorCode::failure;
  std::string message;  ///< what happened, to which path or device, and what to do next
  int os_error = 0;     ///< errno if a system call failed, else 0. Code reads this, never the message

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

// One way to pass an error on.

/// BERTH_LET(const auto site, read_site_files(paths)); declares `site` as the value of a Result, or
/// returns its error from the function around it.
#define BERTH_LET(declaration, ...) BERTH_LET_THROUGH(BERTH_NAME_AT(__LINE__), declaration, __VA_ARGS__)
#define BERTH_LET_THROUGH(result, declaration, ...)               \
  auto result = (__VA_ARGS__);                                    \
  if (!result) return std::unexpected(std::move(result).error()); \
  declaration = *std::move(result)
// Twice, so that __LINE__ is a number before it becomes part of a name.
#define BERTH_NAME_AT(line) BERTH_PASTED(berth_result_at_, line)
#define BERTH_PASTED(left, right) left##right

/// BERTH_DO(check(settings)); goes on if the Result is good. Otherwise it returns the error from
/// the function around it.
#define BERTH_DO(...)                                          \
  do {                                                         \
    if (auto berth_result = (__VA_ARGS__); !berth_result)      \
      return std::unexpected(std::move(berth_result).error()); \
  } while (false)

/// The same two in a coroutine.
#define BERTH_CO_LET(declaration, ...) BERTH_CO_LET_THROUGH(BERTH_NAME_AT(__LINE__), declaration, __VA_ARGS__)
#define BERTH_CO_LET_THROUGH(result, declaration, ...)               \
  auto result = (__VA_ARGS__);                                       \
  if (!result) co_return std::unexpected(std::move(result).error()); \
  declaration = *std::move(result)
#define BERTH_CO_DO(...)                                                           \
  do {                                                                             \
    auto berth_result = (__VA_ARGS__);                                             \
    if (!berth_result) co_return std::unexpected(std::move(berth_result).error()); \
  } while (false)

/// The same error, whose message begins with what was being done when it happened: "reading X: …".
inline Error context(Error error, std::string_view doing) {
  error.message = std::string(doing) + ": " + error.message;
  return error;
}

/// One row of the table that maps a code to what each face of Berth shows.
struct Outcome {
  ErrorCode code;
  std::string_view name;    ///< as in JSON: "not_now"
  int exit_status;          ///< of the program
  int http_status;          ///< of the agent
  std::string_view python;  ///< name of the exception class in the package
};

/// The row of `code`.
const Outcome& outcome_of(ErrorCode code);

/// The name of `code` in that table.
std::string_view to_text(ErrorCode code);
/// Reads such a name. An unknown name becomes `failure` and is valid, because a newer program may
/// know more names.
bool read_value(std::string_view text, ErrorCode& code);

}  // namespace berth
