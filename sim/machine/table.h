// Typed reading of one TOML table: every mistake becomes one line "FILE:LINE: what", the first one
// is kept.
#pragma once

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Without this, numbers are read through iostreams, and 600 KB of locales go with them into every
// library.
#define TOML_FLOAT_CHARCONV 1
// toml++ 3.3 asserts what a malformed file can break (`a"b"` aborts a debug build); its own error
// branch does better.
#define TOML_ASSERT(expression) static_assert(true)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::sim {

class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}
  void add(const toml::source_region& where, const std::string& what) {
    if (first_.empty()) first_ = file_ + ":" + std::to_string(where.begin.line) + ": " + what;
  }
  [[nodiscard]] bool any() const { return !first_.empty(); }
  [[nodiscard]] const std::string& first() const { return first_; }

 private:
  std::string file_;
  std::string first_;
};

class Table {
 public:
  Table(const toml::table& table, Problems& problems, std::string_view what)
      : table_(table), problems_(problems), what_(what) {}

  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most);
  std::optional<double> number(std::string_view key, double least, double most);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  /// "500ms", "2s", "1.5s", "3m", or a number of seconds; in microseconds.
  std::optional<std::uint64_t> duration_us(std::string_view key);
  /// One of `names`; its position.
  std::optional<unsigned> one_of(std::string_view key, std::initializer_list<std::string_view> names);
  const toml::array* array(std::string_view key);
  std::vector<const toml::table*> tables(std::string_view key);
  const toml::node* any(std::string_view key) { return take(key); }

  /// Replaces `target` where the file has the key.
  void set(std::string_view key, unsigned& target, std::int64_t most) {
    if (auto value = integer(key, 0, most)) target = static_cast<unsigned>(*value);
  }
  void set(std::string_view key, std::uint64_t& target, std::int64_t most) {
    if (auto value = integer(key, 0, most)) target = static_cast<std::uint64_t>(*value);
  }
  void set(std::string_view key, bool& target) {
    if (auto value = boolean(key)) target = *value;
  }
  void set(std::string_view key, std::string& target) {
    if (auto value = text(key)) target = std::move(*value);
  }

  void wrong(const toml::node& node, const std::string& what) { problems_.add(node.source(), what); }
  void wrong(std::string_view key, const std::string& what);
  void wrong(const std::string& what) { problems_.add(table_.source(), what); }
  Problems& problems() { return problems_; }
  [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
  /// Reports the first key that nobody asked for.
  void finish();

 private:
  const toml::node* take(std::string_view key);

  const toml::table& table_;
  Problems& problems_;
  std::string_view what_;
  std::vector<std::string_view> known_;
};

}  // namespace berth::sim
