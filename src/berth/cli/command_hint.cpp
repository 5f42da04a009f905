#include "berth/cli/command_hint.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/sys/file.h"

namespace berth::cli {
namespace {

std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

// "FOO=1", which a shell would take for a variable.
bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || (word[0] >= '0' && word[0] <= '9')) return false;
  return std::ranges::all_of(word.substr(0, equals), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

// The kernel then looks for an interpreter whose name ends in a carriage return.
bool is_script_with_crlf(const std::string& path) {
  const auto text = sys::read_whole(path);
  if (!text || !text->starts_with("#!")) return false;
  const std::size_t end = text->find('\n');
  return end != std::string::npos && (*text)[end - 1] == '\r';
}

}  // namespace

std::string command_hint(const std::vector<std::string>& words) {
  const std::string& first = words.front();
  if (is_assignment(first)) {
    return fmt::format("; to set a variable for the command: berth run -- env {}", fmt::join(words, " "));
  }
  if (first.find('/') != std::string::npos && is_script_with_crlf(first))
    return fmt::format("; its lines end as Windows has them: sed -i 's/\\r$//' {}", first);
  if (first.find_first_of(" \t\n|&;<>()$`*") != std::string::npos)
    return fmt::format("; a line for the shell is written so: berth run -- sh -c {}", in_quotes(first));
  return "";
}

}  // namespace berth::cli
