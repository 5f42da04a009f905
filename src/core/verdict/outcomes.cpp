#include "berth/verdict/outcomes.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "berth/base/fnv_hash.h"
#include "berth/base/printable.h"
#include "berth/base/text_match.h"

namespace berth {
namespace {

constexpr std::size_t kLongestProgram = 40;

bool is_script(std::string_view word) {
  constexpr std::array<std::string_view, 8> kEnds{".py", ".sh", ".pl", ".rb", ".R", ".jl", ".lua", ".js"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return word.ends_with(end); });
}

bool is_interpreter(std::string_view program) {
  program.remove_prefix(std::min(program.rfind('/') + 1, program.size()));
  constexpr std::array<std::string_view, 10> kNames{"python", "pypy", "bash", "sh",   "dash",
                                                    "zsh",    "perl", "ruby", "node", "java"};
  return std::ranges::any_of(kNames, [&](std::string_view name) {
    return program.starts_with(name) &&
           program.substr(name.size()).find_first_not_of("0123456789.") == std::string_view::npos;
  });
}

std::string without_digits(std::string_view text) {
  std::string rest;
  std::ranges::copy_if(text, std::back_inserter(rest), [](char c) { return c < '0' || c > '9'; });
  return rest;
}

/// "python", "train.py": what of a command says which program it is.
std::string program_and_script(std::string_view command) {
  const std::string_view program = command.substr(0, command.find(' '));
  std::string found(program);
  const bool interprets = is_interpreter(program);
  for (std::size_t at = program.size(); at < command.size();) {
    const std::size_t begin = command.find_first_not_of(' ', at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(command.find(' ', begin), command.size());
    const std::string_view word = command.substr(begin, end - begin);
    const std::string_view rest = trimmed(command.substr(end));
    at = end;
    if (interprets && (word == "-c" || word == "-e")) {
      const bool is_plain = rest.find_first_of(";&|<>$`\"'()[]{}\n") == std::string_view::npos;
      return found + '\0' + (is_plain ? program_and_script(rest) : without_digits(rest));
    }
    if (interprets && (word == "-m" || word == "-jar"))
      return found + '\0' + std::string(rest.substr(0, rest.find(' ')));
    if (is_script(word) || (interprets && !word.starts_with('-'))) return found + '\0' + std::string(word);
  }
  return found;
}

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

/// "--lr=1e-3" and "--lr=0.1" are "--lr=#", "--data=/mnt/a" and "--data=../b" are "--data=/".
std::string without_values(std::string_view word) {
  const std::size_t value = word.find('=') + 1;
  if (word.find('/', value) != std::string_view::npos) return std::string(word.substr(0, value)) + '/';
  std::string shape;
  for (std::size_t at = 0; at < word.size();) {
    if (!is_digit(word[at])) {
      shape += word[at++];
      continue;
    }
    shape += '#';
    at = std::min(word.find_first_not_of("0123456789.eE+-", at), word.size());
  }
  return shape;
}

}  // namespace

std::uint64_t fingerprint_of(std::uint32_t uid, std::string_view command) {
  return fnv_hash(std::to_string(uid) + '\0' + program_and_script(trimmed(command)));
}

std::uint64_t shape_of(std::uint32_t uid, std::string_view command) {
  std::string text = std::to_string(uid) + '\0' + program_and_script(trimmed(command));
  for (const std::string_view word : parts_at(trimmed(command), ' ')) text += '\0' + without_values(word);
  return fnv_hash(text);
}

std::string told_program(std::string_view command) {
  const std::string found = program_and_script(trimmed(command));
  std::string_view word = std::string_view(found).substr(found.rfind('\0') + 1);
  // A word with a space is a script that a shell was given, and no path.
  if (word.find(' ') == std::string_view::npos) word.remove_prefix(word.rfind('/') + 1);
  return std::string(shortened(trimmed(word), kLongestProgram));
}

}  // namespace berth
