#include "berth/jobs/model/submit_rules.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"

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

namespace {

bool has_word(std::string_view list, std::string_view word) {
  return std::ranges::any_of(std::views::split(list, ' '), [&](const auto part) {
    return std::string_view(part.begin(), part.end()) == word;
  });
}

/// logind.conf(5).
struct Settings {
  bool kills = false;
  std::string only;
  std::string exclude = "root";
};

void take_setting(Settings& settings, std::string_view line) {
  const std::size_t sign = line.find('=');
  if (sign == std::string_view::npos) return;
  const std::string_view key = trimmed(line.substr(0, sign));
  const std::string_view value = trimmed(line.substr(sign + 1));
  if (key == "KillUserProcesses")
    settings.kills = value == "yes" || value == "true" || value == "on" || value == "1";
  if (key == "KillOnlyUsers") settings.only = value;
  if (key == "KillExcludeUsers") settings.exclude = value;
}

// "1:name=systemd:/user.slice/user-1000.slice/session-3.scope"
bool is_in_session(std::string_view cgroup) {
  const std::size_t at = cgroup.find("/session-");
  return at != std::string_view::npos && cgroup.find(".scope", at) != std::string_view::npos;
}

}  // namespace

Logout logout_of(std::string_view cgroup, const std::vector<std::string>& settings, std::string_view user,
                 bool lingers) {
  if (is_in_session(cgroup)) {
    Settings all;
    for (const std::string& text : settings) {
      for (const auto line : std::views::split(text, '\n'))
        take_setting(all, std::string_view(line.begin(), line.end()));
    }
    const bool meant = all.only.empty() || has_word(all.only, user);
    return all.kills && meant && !has_word(all.exclude, user) ? Logout::ends_session : Logout::keeps;
  }
  const bool below_manager = cgroup.find("/user@") != std::string_view::npos;
  return below_manager && !lingers ? Logout::ends_manager : Logout::keeps;
}

}  // namespace berth
