#include "berth/hub/nvgpu_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace berth::hub {
namespace {

constexpr std::string_view kAgents = "AGENTS";
constexpr std::string_view kToken = "TOKEN";
constexpr std::string_view kAllowed =
    "allowed are assignments of lists and texts: AGENTS = ['self', 'http://node02:1080'], TOKEN = '…'";

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Where in the file the reading is.
class PythonText {
 public:
  PythonText(std::string_view path, std::string_view text) : path_(path), rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  char next() const { return rest_.empty() ? '\0' : rest_.front(); }
  unsigned line() const { return line_; }
  void take(std::size_t count) {
    line_ += static_cast<unsigned>(std::ranges::count(rest_.substr(0, count), '\n'));
    rest_.remove_prefix(std::min(count, rest_.size()));
  }
  bool take_if(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    take(word.size());
    return true;
  }

  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(ErrorCode::failure, fmt::format("{}:{}: {}", path_, line_, what));
  }

  /// Blanks, comments and continued lines; also plain line ends where `over_lines`.
  void skip_blank(bool over_lines) {
    while (!rest_.empty()) {
      if (next() == '#') {
        take(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.starts_with("\\\n")) {
        take(2);
      } else if (next() == ' ' || next() == '\t' || next() == '\r' || next() == '\f' ||
                 (over_lines && next() == '\n')) {
        take(1);
      } else {
        return;
      }
    }
  }

  std::string_view take_name() {
    const auto end = std::ranges::find_if(
        rest_, [](char c) { return !begins_name(c) && std::isdigit(static_cast<unsigned char>(c)) == 0; });
    const auto size = static_cast<std::size_t>(end - rest_.begin());
    const std::string_view name = rest_.substr(0, size);
    take(size);
    return name;
  }

  bool at_text() const {
    const auto quote = std::min(rest_.find_first_of("'\""), rest_.size());
    return quote < rest_.size() && quote <= 2 &&
           rest_.substr(0, quote).find_first_not_of("rRuU") == std::string_view::npos;
  }

  /// One literal. REQUIRES: at_text().
  Result<std::string> take_text() {
    bool raw = false;
    for (; next() != '\'' && next() != '"'; take(1)) raw = raw || next() == 'r' || next() == 'R';
    const std::string_view one = next() == '"' ? "\"" : "'";
    const std::string_view three = next() == '"' ? "\"\"\"" : "'''";
    const std::string_view quote = rest_.starts_with(three) ? three : one;
    take(quote.size());
    std::string text;
    while (!take_if(quote)) {
      if (at_end() || (next() == '\n' && quote.size() == 1)) return wrong("a text has no end");
      if (next() == '\\' && !raw) {
        take_escape(text);
      } else {
        text += next();
        take(1);
      }
    }
    return text;
  }

 private:
  void take_escape(std::string& text) {
    take(1);
    constexpr std::string_view kNames = "\\'\"ntr";
    constexpr std::string_view kMeanings = "\\'\"\n\t\r";
    const std::size_t known = at_end() ? std::string_view::npos : kNames.find(next());
    if (known != std::string_view::npos) {
      text += kMeanings[known];
    } else if (next() != '\n') {
      text += '\\';  // as Python has it
      text += next();
    }
    take(1);
  }

  std::string_view path_;
  std::string_view rest_;
  unsigned line_ = 1;
};

/// Literals that stand beside each other are one text.
Result<std::string> take_texts(PythonText& python, bool over_lines) {
  std::string whole;
  while (python.at_text()) {
    auto text = python.take_text();
    if (!text) return text;
    whole += *text;
    python.skip_blank(over_lines);
  }
  return whole;
}

Result<std::vector<NvgpuFile::Entry>> take_list(PythonText& python) {
  const char end = python.next() == '(' ? ')' : ']';
  if (python.next() != '[' && python.next() != '(')
    return python.wrong("AGENTS must be a list of texts: ['self', 'http://node02:1080']");
  python.take(1);
  std::vector<NvgpuFile::Entry> entries;
  for (python.skip_blank(true); python.next() != end; python.skip_blank(true)) {
    if (!python.at_text())
      return python.wrong("an entry of AGENTS must be a text: 'self' or a URL in quotes");
    const unsigned line = python.line();
    BERTH_LET(auto text, take_texts(python, true));
    entries.push_back({std::move(text), line});
    if (!python.take_if(",") && python.next() != end)
      return python.wrong("entries of AGENTS are divided by commas");
  }
  python.take(1);
  return entries;
}

/// A value that does not matter here, to the end of its line.
Result<void> skip_value(PythonText& python) {
  int depth = 0;
  for (python.skip_blank(false); !python.at_end() && (python.next() != '\n' || depth > 0);
       python.skip_blank(depth > 0)) {
    if (python.at_text()) {
      BERTH_DO(python.take_text());
      continue;
    }
    const char c = python.next();
    if (c == '[' || c == '(' || c == '{') ++depth;
    if (c == ']' || c == ')' || c == '}') --depth;
    python.take(1);
  }
  return {};
}

Result<void> read_assignment(PythonText& python, NvgpuFile& file) {
  if (python.at_text()) return skip_value(python);  // a text that stands alone is a comment
  const std::string_view name = begins_name(python.next()) ? python.take_name() : "";
  python.skip_blank(false);
  if (name.empty() || !python.take_if("=") || python.next() == '=') return python.wrong(kAllowed);
  python.skip_blank(false);
  if (name == kAgents) {
    BERTH_LET(auto entries, take_list(python));
    file.agents = std::move(entries);
  } else if (name == kToken && python.at_text()) {
    BERTH_LET(auto token, take_texts(python, false));
    // It stands in the header of a request.
    if (std::ranges::any_of(token, [](unsigned char c) { return c <= ' ' || c == 0x7f; }))
      return python.wrong("TOKEN must be one word");
    file.token = std::move(token);
  } else if (name == kToken && !python.take_if("None")) {
    return python.wrong("TOKEN must be a text in quotes, or None");
  } else {
    return skip_value(python);
  }
  python.skip_blank(false);
  if (!python.at_end() && python.next() != '\n' && python.next() != ';') return python.wrong(kAllowed);
  return {};
}

}  // namespace

Result<NvgpuFile> read_nvgpu_file(std::string_view path, std::string_view text) {
  NvgpuFile file;
  PythonText python(path, text);
  for (python.skip_blank(true); !python.at_end(); python.skip_blank(true)) {
    if (python.take_if(";")) continue;
    BERTH_DO(read_assignment(python, file));
  }
  return file;
}

bool is_nvgpu_file(std::string_view path, std::string_view text) {
  if (path.ends_with(".toml")) return false;
  if (path.ends_with(".cfg") || path.ends_with(".py")) return true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(kAgents)) continue;
    line.remove_prefix(kAgents.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with('=')) return true;
  }
  return false;
}

}  // namespace berth::hub
