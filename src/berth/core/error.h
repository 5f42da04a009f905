#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace berth {

/// What went wrong, as far as a program needs to know to react. Closed: `outcomes()` says what each
/// means as an exit status, an HTTP status and a Python exception.
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

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

/// The same error, with what was being done when it happened put in front: "reading X: …".
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

}  // namespace berth
