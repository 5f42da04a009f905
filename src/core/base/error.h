#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace berth {

/// What went wrong, as far as a program needs to know it to react. There are no other codes.
/// `outcome_of()` says what each code means as an exit status, an HTTP status and a Python
/// exception. The last three, and `no_driver`, can also be the code of a refusal, which has the
/// reason of each device: ExplainedRefusal (lease/session.h) says which is which.
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

// The values of an enum as words: in records, JSON, options and the site file. An enum has them by
// a function beside it:
//
//     enum class Ending { well, badly };
//     constexpr auto words_of(Ending) {
//       return std::to_array<std::string_view>({"well", "badly"});
//     }
template <class Enum>
concept HasWords = std::is_enum_v<Enum> && requires(Enum value) { words_of(value); };

/// As the compiler spells it: "berth::Ending::well", but "(berth::Ending)9" if no value has that
/// number.
template <auto kValue>
consteval std::string_view spelled() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("kValue = ") + std::string_view("kValue = ").size());
  return text;
}
/// Whether each value of the enum has a word, and no word is left over. Asserted wherever the words
/// are used, so that a value without a word does not compile.
template <HasWords Enum>
consteval bool has_all_words() {
  constexpr std::size_t kCount = words_of(Enum()).size();
  return !spelled<static_cast<Enum>(kCount - 1)>().starts_with('(') &&
         spelled<static_cast<Enum>(kCount)>().starts_with('(');
}

template <HasWords Enum>
constexpr std::string_view to_text(Enum value) {
  static_assert(has_all_words<Enum>());
  return words_of(value)[static_cast<std::size_t>(value)];
}

/// nullopt: the text is none of the words.
template <HasWords Enum>
constexpr std::optional<Enum> from_word(std::string_view text) {
  static_assert(has_all_words<Enum>());
  const auto words = words_of(Enum());
  const auto found = std::ranges::find(words, text);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

/// False: it is none of the words, and the value is as it was.
template <HasWords Enum>
bool read_value(std::string_view text, Enum& value) {
  const auto known = from_word<Enum>(text);
  value = known.value_or(value);
  return known.has_value();
}

/// How a process ended.
struct ProcessEnd {
  int exit_status = 0;  ///< valid if `signal` is 0; -1: another part of the program has collected it
  int signal = 0;       ///< the signal that killed it, or 0

  bool operator==(const ProcessEnd&) const = default;
};

/// As a shell tells it: 128 plus the signal.
constexpr int shell_status(const ProcessEnd& end) {
  constexpr int kBySignal = 128;
  return end.signal != 0 ? kBySignal + end.signal : end.exit_status;
}

/// The same in the two fields of a record, of which only one is known.
template <class Record>
void set_end(Record& record, const ProcessEnd& end) {
  if (end.signal != 0)
    record.signal = end.signal;
  else
    record.exit_status = end.exit_status;
}

/// A process, and none that has its pid after it. After the next boot the same value may name
/// another process, so a record that lasts longer says the boot too.
struct UniqueProcess {
  std::uint32_t pid = 0;          ///< 0: none
  std::uint64_t start_ticks = 0;  ///< when it began, as /proc/PID/stat says in field 22

  auto operator<=>(const UniqueProcess&) const = default;
};

/// "0.1.0".
std::string_view version();

}  // namespace berth
