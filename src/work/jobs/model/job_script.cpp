#include "berth/jobs/model/job_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "berth/base/printable.h"

namespace berth {
namespace {

constexpr auto kShells = std::to_array<std::string_view>({"sh", "bash", "dash", "ksh", "zsh"});
// A variable has 128 KiB at most.
constexpr std::size_t kLongestFarScript = 100 << 10;

/// The words of a line, as a shell would take them apart: quotes hold together, a backslash takes
/// the next character as it is. Error: `usage`, for a quote that does not end.
Result<std::vector<std::string>> words_of_line(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (c == ' ' || c == '\t')) {
      in_word = false;
      continue;
    }
    if (quote == 0 && !in_word && c == '#') return words;
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      words.back() += line[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) return fail(ErrorCode::usage, "a quote does not end");
  return words;
}

}  // namespace

Result<std::vector<JobScriptLine>> options_in_job_script(std::string_view name, std::string_view text,
                                                         std::string_view mark) {
  std::vector<JobScriptLine> lines;
  unsigned number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    if (!line.empty() && line.front() != '#') break;
    if (!line.starts_with(mark)) continue;
    std::string where = fmt::format("{}, line {}", printable(name), number);
    auto words = words_of_line(line.substr(mark.size()));
    if (!words) return std::unexpected(context(words.error(), where));
    lines.push_back({std::move(where), *std::move(words)});
  }
  return lines;
}

Result<std::vector<std::string>> shell_of_script(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  auto words = words_of_line(line.substr(line.starts_with("#!") ? 2 : 0));
  if (!words) return words;
  const std::size_t named = !words->empty() && words->front().ends_with("/env") ? 1 : 0;
  const std::string program = words->size() > named ? (*words)[named] : "";
  const std::string name = program.substr(program.rfind('/') + 1);
  if (std::ranges::find(kShells, name) == kShells.end())
    return fail(ErrorCode::usage,
                "with --anywhere a script is one of a shell (#!/bin/bash); for another: "
                "berth submit --anywhere -- python train.py, from a file that all hosts have");
  if (text.size() > kLongestFarScript)
    return fail(ErrorCode::usage, "with --anywhere a script has 100 KiB at most");
  return words;
}

}  // namespace berth
