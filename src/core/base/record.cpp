#include "berth/base/record.h"

#include "berth/base/text.h"

namespace berth {
namespace {

constexpr std::string_view kEnd = "end";

// Each pick writes some of these texts: find_first_of would call a function for each character.
std::size_t find_special(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' || text[i] == '\r' || text[i] == '\\') return i;
  }
  return std::string_view::npos;
}

void append_escaped(std::string& text, std::string_view value) {
  for (;;) {
    const std::size_t special = find_special(value);
    text.append(value.substr(0, special));
    if (special == std::string_view::npos) return;
    text += '\\';
    text += value[special] == '\n' ? 'n' : value[special] == '\r' ? 'r' : '\\';
    value.remove_prefix(special + 1);
  }
}

/// The text without its escapes: a part of `text` if it has none, else `value`. nullopt: a
/// backslash begins no escape.
std::optional<std::string_view> unescape(std::string_view text, std::string& value) {
  std::size_t backslash = text.find('\\');
  if (backslash == std::string_view::npos) return text;
  value.assign(text.substr(0, backslash));
  while (backslash != std::string_view::npos) {
    const char kind = backslash + 1 < text.size() ? text[backslash + 1] : '\0';
    if (kind != 'n' && kind != 'r' && kind != '\\') return std::nullopt;
    value += kind == 'n' ? '\n' : kind == 'r' ? '\r' : '\\';
    text.remove_prefix(backslash + 2);
    backslash = text.find('\\');
    value.append(text.substr(0, backslash));
  }
  return value;
}

std::unexpected<Error> malformed(std::string_view kind, unsigned line, std::string_view what) {
  return fail(ErrorCode::failure, "malformed {} record, line {}: {}", kind, line, what);
}

/// Takes one line off the front of `text`. nullopt: no newline is left, so the line was cut off.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t newline = text.find('\n');
  if (newline == std::string_view::npos) return std::nullopt;
  const std::string_view line(text.data(), newline);
  text.remove_prefix(newline + 1);
  return line;
}

/// The version in "KIND VERSION", or nullopt when the line is something else.
std::optional<unsigned> version_in(std::string_view line, std::string_view kind) {
  if (!line.starts_with(kind) || line.size() < kind.size() + 2 || line[kind.size()] != ' ')
    return std::nullopt;
  return number_from_text<unsigned>(line.substr(kind.size() + 1));
}

}  // namespace

RecordWriter::RecordWriter(std::string_view kind, unsigned version) {
  text_.append(kind);
  text_ += ' ';
  text_ += std::to_string(version);
  text_ += '\n';
}

void RecordWriter::field(std::string_view key, std::string_view value) {
  text_.append(key);
  text_ += '=';
  append_escaped(text_, value);
  text_ += '\n';
}

void RecordWriter::field(std::string_view key, std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text_.append(key);
  text_ += '=';
  text_.append(digits, end);
  text_ += '\n';
}

void RecordWriter::section(std::string_view name) {
  text_ += '[';
  text_.append(name);
  text_ += "]\n";
}

std::string RecordWriter::take() {
  return std::exchange(text_, {});
}

std::string RecordWriter::finish() && {
  text_.append(kEnd);
  text_ += '\n';
  return std::move(text_);
}

Result<unsigned> read_record(std::string_view text, std::string_view kind,
                             const std::function<void(const RecordLine&)>& on_line) {
  const auto first = take_line(text);
  const auto version = first ? version_in(*first, kind) : std::nullopt;
  if (!version) return malformed(kind, 1, fmt::format("expected \"{} VERSION\"", kind));

  RecordLine line;
  std::string unescaped;
  for (unsigned number = 2;; ++number) {
    const auto raw = take_line(text);
    if (!raw) return malformed(kind, number, "cut off: the line \"end\" is missing");
    if (*raw == kEnd) {
      if (!text.empty()) return malformed(kind, number + 1, "text after the end");
      return *version;
    }
    if (raw->size() > 2 && raw->front() == '[' && raw->back() == ']') {
      line.section = raw->substr(1, raw->size() - 2);
      line.key = {};
      line.value = {};
      on_line(line);
      continue;
    }
    const std::size_t equals = raw->find('=');
    if (equals == 0 || equals == std::string_view::npos) return malformed(kind, number, "expected KEY=VALUE");
    const auto value = unescape(raw->substr(equals + 1), unescaped);
    if (!value) return malformed(kind, number, "a backslash that escapes nothing");
    line.value = *value;
    line.key = raw->substr(0, equals);
    on_line(line);
  }
}

}  // namespace berth
