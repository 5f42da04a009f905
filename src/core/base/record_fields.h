#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/record.h"
#include "berth/base/text.h"

// The values in a record. Each of our records has one list of its fields, a function that calls
// `field(key, value)` for each; a FieldWriter and a FieldReader walk the same list, so they cannot
// drift apart. Most records are one such list and no more:
//
//     constexpr auto kWaiting = record_of<Waiting>("berth-waiting", 1, [](auto& one, auto&& field) {
//       field("position", one.position);
//       field("text", one.text);
//     });
//
// A type of ours is a value by two functions beside it, to_text(value) and read_value(text, value).
// All of them keep one promise: if read_value says false, the text is none, and the value is as it
// was. A type for which any text will do, since a newer program may know more words, never says
// false.
namespace berth {

/// Seconds since the epoch in a text that anybody may have written. Bounded, so that what we
/// compute from it stays a valid time.
inline constexpr std::int64_t kLatestSeconds = 100'000'000'000;

template <class T>
concept Worded = requires(const T& value) { to_text(value); };

/// A std::chrono::duration, of which the core knows no more: it has no clock.
template <class T>
concept Timespan = requires(const T& value) {
  typename T::rep;
  typename T::period;
  value.count();
};

/// Writes fields. It leaves out what a reader assumes anyway: an empty text, a false bool, the
/// first word of an enum, an absent reading. It writes a reading that is there, whatever its value.
/// A list is its key several times.
class FieldWriter {
 public:
  explicit FieldWriter(RecordWriter& record,
                       std::size_t longest_text = std::numeric_limits<std::size_t>::max())
      : record_(record), longest_text_(longest_text) {}

  void operator()(std::string_view key, const std::string& value) const {
    if (!value.empty()) record_.field(key, shortened(value, longest_text_));
  }
  void operator()(std::string_view key, bool value) const {
    if (value) record_.field(key, 1);
  }
  void operator()(std::string_view key, const std::vector<std::string>& values) const {
    for (const std::string& value : values) record_.field(key, value);
  }
  template <class T>
  void operator()(std::string_view key, const std::optional<T>& value) const {
    if (value) put(key, *value);
  }
  template <class T>
  void operator()(std::string_view key, const T& value) const {
    if constexpr (std::is_enum_v<T>) {
      if (value == T{}) return;
    }
    put(key, value);
  }
  /// A section for each entry; they come after all fields.
  void sections(std::string_view name, const auto& list, const auto& fields) const {
    for (const auto& entry : list) {
      record_.section(name);
      fields(entry, *this);
    }
  }
  void time(std::string_view key, std::int64_t seconds) const { put(key, seconds); }
  void hint(std::string_view key, const std::optional<std::int64_t>& value, std::int64_t,
            std::int64_t) const {
    (*this)(key, value);
  }
  void clamped(std::string_view key, const std::optional<std::int64_t>& value, std::int64_t,
               std::int64_t) const {
    (*this)(key, value);
  }

 private:
  void put(std::string_view key, const std::string& value) const { record_.field(key, value); }
  void put(std::string_view key, bool value) const { record_.field(key, std::uint64_t{value}); }
  template <Worded Word>
  void put(std::string_view key, Word value) const {
    record_.field(key, to_text(value));
  }
  template <std::unsigned_integral Number>
  void put(std::string_view key, Number value) const {
    record_.field(key, std::uint64_t{value});
  }
  template <std::signed_integral Number>
  void put(std::string_view key, Number value) const {
    record_.field(key, std::to_string(value));
  }
  template <Timespan Span>
  void put(std::string_view key, Span value) const {
    put(key, value.count());
  }

  RecordWriter& record_;
  std::size_t longest_text_;
};

/// Walks the fields of a value to which nothing has happened. What a FieldWriter leaves out a
/// FieldReader never meets, so that it must be what the value begins with.
class FieldCheck {
 public:
  constexpr bool begins_as_left_out() const { return begins_as_left_out_; }

  constexpr void operator()(std::string_view, const std::string& value) { note(value.empty()); }
  constexpr void operator()(std::string_view, bool value) { note(!value); }
  constexpr void operator()(std::string_view, const std::vector<std::string>& values) {
    note(values.empty());
  }
  template <class T>
  constexpr void operator()(std::string_view, const std::optional<T>& value) {
    note(!value);
  }
  template <class T>
  constexpr void operator()(std::string_view, const T& value) {
    if constexpr (std::is_enum_v<T>) note(value == T{});
  }
  template <class Entry>
  constexpr void sections(std::string_view, const std::vector<Entry>& list, const auto& fields) {
    note(list.empty());
    Entry entry{};
    fields(entry, *this);
  }
  constexpr void time(std::string_view, std::int64_t) {}
  constexpr void hint(std::string_view, const std::optional<std::int64_t>& value, std::int64_t,
                      std::int64_t) {
    note(!value);
  }
  constexpr void clamped(std::string_view, const std::optional<std::int64_t>& value, std::int64_t,
                         std::int64_t) {
    note(!value);
  }

 private:
  constexpr void note(bool begins_so) { begins_as_left_out_ = begins_as_left_out_ && begins_so; }

  bool begins_as_left_out_ = true;
};

/// Whether what is left out of the record of a value is read back as it was: no flag is true at
/// first, for example. Of each list of fields this is asserted.
template <class Value>
consteval bool reads_what_is_left_out([[maybe_unused]] const auto& fields) {
#ifdef __clang__
  // Clang makes no string of the library of GCC 12 at compile time: GCC checks the lists.
  return true;
#else
  Value value{};
  FieldCheck field;
  fields(value, field);
  return field.begins_as_left_out();
#endif
}

/// Reads the value of a field: text as it is, a reading that is true or false as 1 or 0, a number
/// in decimal. False: the text is something else, and `value` is as it was.
inline bool read_value(std::string_view text, std::string& value) {
  value = text;
  return true;
}
template <std::integral Number>
bool read_value(std::string_view text, Number& value) {
  const auto number = number_from_text<Number>(text);
  value = number.value_or(value);
  return number.has_value();
}
/// What is not the mark is no mark.
inline bool read_value(std::string_view text, bool& value) {
  value = text == "1";
  return true;
}
inline bool read_value(std::string_view text, std::optional<bool>& value) {
  if (text != "1" && text != "0") return false;
  value = text == "1";
  return true;
}
inline bool read_value(std::string_view text, std::vector<std::string>& values) {
  values.emplace_back(text);
  return true;
}
template <Timespan Span>
bool read_value(std::string_view text, Span& value) {
  auto count = value.count();
  const bool valid = read_value(text, count);
  value = Span(count);
  return valid;
}

/// Reads one line of a record into the field whose key it has, if there is one. Other keys are
/// those of a newer writer.
class FieldReader {
 public:
  explicit FieldReader(const RecordLine& line) : line_(line) {}

  std::string_view section() const { return line_.section; }
  std::string_view key() const { return line_.key; }
  std::string_view value() const { return line_.value; }
  /// The line begins its section.
  bool begins() const { return line_.key.empty(); }

  template <class T>
  [[gnu::always_inline]] void operator()(std::string_view key, T& value) {
    if (is_at(key)) take(value);
  }
  /// This value is meant, whatever the key.
  template <class T>
  void take(T& value) {
    taken_ = true;
    valid_ = read(value);
  }
  /// For a list with `sections`: a line in a section is none of the fields outside of it.
  void keep_sections_apart() { taken_ = !line_.section.empty(); }
  void sections(std::string_view name, auto& list, const auto& fields) {
    if (line_.section != name) return;
    if (begins()) list.emplace_back();
    taken_ = false;
    fields(list.back(), *this);
    taken_ = true;
  }
  void time(std::string_view key, std::int64_t& seconds) {
    if (!is_at(key)) return;
    take(seconds);
    valid_ = valid_ && seconds >= 0 && seconds < kLatestSeconds;
  }
  /// A value that others only use for estimates: if it is out of its bounds or not a number, it is
  /// ignored.
  void hint(std::string_view key, std::optional<std::int64_t>& value, std::int64_t least, std::int64_t most) {
    if (!is_at(key)) return;
    taken_ = true;
    value = number_from_text<std::int64_t>(line_.value);
    if (value && (*value < least || *value > most)) value.reset();
  }

  /// An estimate that must not count as absent: out of its bounds it is the nearer one, and what is
  /// no number is the upper one.
  void clamped(std::string_view key, std::optional<std::int64_t>& value, std::int64_t least,
               std::int64_t most) {
    if (!is_at(key)) return;
    taken_ = true;
    value = std::clamp(number_from_text<std::int64_t>(line_.value).value_or(most), least, most);
  }

  /// The line is refused: its value is not valid.
  void refuse() { valid_ = false; }
  bool is_valid() const { return valid_; }

 private:
  /// A line is held against each key of a list, of which all but one are others: the compiler sees
  /// the key, and makes a few comparisons of it instead of two calls.
  [[gnu::always_inline]] bool is_at(std::string_view key) const {
    return !taken_ && key.size() == line_.key.size() &&
           __builtin_memcmp(key.data(), line_.key.data(), key.size()) == 0;
  }
  template <class T>
  bool read(T& value) const {
    return read_value(line_.value, value);
  }
  template <class T>
  bool read(std::optional<T>& value) const {
    if constexpr (requires { read_value(line_.value, value); }) {
      return read_value(line_.value, value);
    } else {
      T read{};
      const bool valid = read_value(line_.value, read);
      if (valid) value = std::move(read);
      return valid;
    }
  }

  const RecordLine& line_;
  bool taken_ = false;
  bool valid_ = true;
};

/// The error for the first line that was refused. `key`: "" for a line that begins a section.
Error malformed_field(std::string_view section, std::string_view key);
Result<void> check_record_version(std::string_view kind, unsigned found, unsigned known);

/// Reads a whole record of this kind and version. `take(field)` gets each line in turn and walks
/// the list that it belongs to. Error: `failure`, as read_record, for another version, and for a
/// line that was refused.
template <class Take>
Result<void> read_fields(std::string_view text, std::string_view kind, unsigned version, Take take) {
  std::optional<Error> fault;
  BERTH_LET(const unsigned found, read_record(text, kind, [&](const RecordLine& line) {
              FieldReader field(line);
              take(field);
              if (!field.is_valid() && !fault) fault = malformed_field(line.section, line.key);
            }));
  BERTH_DO(check_record_version(kind, found, version));
  if (fault) return std::unexpected(*std::move(fault));
  return {};
}

/// A kind of record that is one value. `fields(value, field)`: the list of its fields.
template <class Value, class Fields>
struct RecordOf {
  std::string_view kind;
  unsigned version;
  Fields fields;
  std::size_t longest_text;  ///< bytes that are written of a text

  std::string encode(const Value& value) const {
    RecordWriter record(kind, version);
    fields(value, FieldWriter(record, longest_text));
    return std::move(record).finish();
  }
  /// Error: as read_fields.
  Result<Value> decode(std::string_view text) const {
    Value value;
    BERTH_DO(read_fields(text, kind, version, [&](FieldReader& field) {
      field.keep_sections_apart();
      fields(value, field);
    }));
    return value;
  }
};
template <class Value, class Fields>
constexpr RecordOf<Value, Fields> record_of(
    std::string_view kind, unsigned version, Fields fields,
    std::size_t longest_text = std::numeric_limits<std::size_t>::max()) {
  static_assert(reads_what_is_left_out<Value>(Fields{}));
  return {kind, version, fields, longest_text};
}

}  // namespace berth
