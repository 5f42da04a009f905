#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth {

/// The text form of all our data: tickets, snapshots on the pipe, the request to a probe.
///
///     berth-ticket 1          kind and version
///     id=0000025b3c1d0e42     key=value, one a line; \n, \r and \\ in a value are escaped
///     [process]               begins a section: the keys after it belong to it
///     pid=4711
///     end                     last line: what lacks it was cut off
///
/// A reader ignores keys and sections that it does not know, so newer writers do not break it. A
/// list is the same key several times.
struct RecordLine {
  std::string_view section;  ///< "" before the first
  std::string_view key;      ///< "" for the line that begins the section
  std::string_view value;    ///< while on_line runs
};

class RecordWriter {
 public:
  RecordWriter(std::string_view kind, unsigned version);
  void field(std::string_view key, std::string_view value);
  void field(std::string_view key, std::uint64_t value);
  void section(std::string_view name);
  /// The text that was written since the last call, so that a long record can be sent while it is
  /// being made.
  std::string take();
  /// Ends the record and gives its text.
  std::string finish() &&;

 private:
  std::string text_;
};

/// Reads a decimal number. nullopt: the text is anything else, or the number is out of range.
template <class Number>
std::optional<Number> number_from_text(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Reads a whole record and calls `on_line` for each line. Gives the version. Error: `failure` if
/// the kind is another, a line is malformed or the end is missing; the message says which line.
Result<unsigned> read_record(std::string_view text, std::string_view kind,
                             const std::function<void(const RecordLine&)>& on_line);

}  // namespace berth
