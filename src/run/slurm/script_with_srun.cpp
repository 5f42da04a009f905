#include "berth/slurm/script_with_srun.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

constexpr std::string_view kSpace = " \t\r";

// Words that may stand before a command in a line, and words after which a command begins anew.
constexpr auto kBefore = std::to_array<std::string_view>(
    {"exec", "time", "nohup", "if", "then", "else", "elif", "do", "while", "until", "!", "{", "("});
constexpr auto kBetween = std::to_array<std::string_view>({"&&", "||", "|", ";", "&"});

bool is_assignment_word(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != 0 && equals != std::string_view::npos &&
         word.substr(0, equals).find_first_of("/$\"'`-") == std::string_view::npos;
}

bool calls_srun(std::string_view line) {
  bool begins = true;
  for (std::size_t at = line.find_first_not_of(kSpace); at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    std::string_view word = line.substr(at, end - at);
    if (word.front() == '#') return false;
    if (begins && word == "srun") return true;
    const bool stays = std::ranges::find(kBefore, word) != kBefore.end() || is_assignment_word(word);
    begins = std::ranges::find(kBetween, word) != kBetween.end() || word.ends_with(';') || (begins && stays);
    at = line.find_first_not_of(kSpace, end);
  }
  return false;
}

bool says_what_srun_is(std::string_view line) {
  constexpr auto kSayings =
      std::to_array<std::string_view>({"srun()", "srun ()", "function srun", "alias srun="});
  return std::ranges::any_of(kSayings, [line](std::string_view each) { return line.contains(each); });
}

}  // namespace

unsigned line_with_srun(std::string_view script) {
  unsigned number = 0;
  unsigned found = 0;
  while (!script.empty()) {
    const std::string_view line = script.substr(0, script.find('\n'));
    script.remove_prefix(std::min(script.size(), line.size() + 1));
    ++number;
    if (says_what_srun_is(line)) return 0;
    if (found == 0 && calls_srun(line)) found = number;
  }
  return found;
}

}  // namespace berth
