#include "berth/supervise/command_hint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/text_match.h"
#include "berth/slurm/slurm_values.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

namespace berth::supervise {
namespace {

// "FOO=1", which a shell would take for a variable.
bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || (word[0] >= '0' && word[0] <= '9')) return false;
  return std::ranges::all_of(word.substr(0, equals), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

struct FileHere {
  bool is_executable = false;
  std::string start;
};

// Any file may be typed in place of a command: a FIFO, /dev/zero, a hundred gigabytes. nullopt: it
// is no regular file, or cannot be read.
std::optional<FileHere> file_here(const std::string& name) {
  constexpr std::size_t kEnough = 1U << 14U;
  struct stat status{};
  if (::stat(name.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const sys::Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return std::nullopt;
  return FileHere{::access(name.c_str(), X_OK) == 0, sys::read_start(file.get(), kEnough).value_or("")};
}

// The kernel then looks for an interpreter whose name ends in a carriage return.
bool is_script_with_crlf(const std::string& path) {
  const auto file = file_here(path);
  if (!file || !file->start.starts_with("#!")) return false;
  const std::size_t end = file->start.find('\n');
  return end != std::string::npos && file->start[end - 1] == '\r';
}

// The program that its first line names, else what its name suggests. "": it is no script.
std::string interpreter_of(std::string_view name, std::string_view text) {
  const std::string_view line = trimmed(text.substr(0, text.find('\n')));
  if (line.starts_with("#!")) {
    std::string_view program = trimmed(line.substr(2));
    const std::size_t space = program.find(' ');
    const bool by_env = program.substr(0, space).ends_with("/env");
    if (by_env && space != std::string_view::npos) program = trimmed(program.substr(space));
    program = program.substr(0, program.find(' '));
    return printable(program.substr(program.rfind('/') + 1));
  }
  if (name.ends_with(".py")) return "python3";
  return name.ends_with(".sh") || name.ends_with(".bash") ? "bash" : "";
}

std::string hint_of_file(const std::vector<std::string>& words, std::string_view verb) {
  const std::string& name = words.front();
  const auto file = file_here(name);
  if (!file) return "";
  const std::string typed = printable(fmt::format("{}", fmt::join(words, " ")));
  const std::string told = printable(name);
  if (file->is_executable) {
    if (name.find('/') != std::string::npos) return "";
    return fmt::format("; {} is here: berth {} -- ./{}", told, verb, typed);
  }
  const std::string interpreter = interpreter_of(name, file->start);
  if (interpreter.empty()) return "";
  if (file->start.find(fmt::format("\n{}", kSlurmScriptMark)) != std::string::npos)
    return fmt::format("; {} is here and has lines for sbatch: berth sbatch {}", told, typed);
  return fmt::format("; {} is here but is not executable{}: berth {} -- {} {}", told,
                     verb == "submit" ? " and has no #BERTH line" : "", verb, interpreter, typed);
}

// Debian and Ubuntu have no "python" of their own.
std::string hint_of_python(const std::vector<std::string>& words, std::string_view verb) {
  if (words.front() != "python" || sys::cannot_start({"python3"})) return "";
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  return fmt::format("; there is python3: berth {} -- python3 {}", verb,
                     printable(fmt::format("{}", fmt::join(rest, " "))));
}

}  // namespace

std::string command_hint(const std::vector<std::string>& words, std::string_view verb) {
  const std::string& first = words.front();
  if (is_assignment(first)) {
    return fmt::format("; to set a variable for the command: berth {} -- env {}", verb,
                       fmt::join(words, " "));
  }
  if (first.find('/') != std::string::npos && is_script_with_crlf(first))
    return fmt::format("; its lines end as Windows has them: sed -i 's/\\r$//' {}", first);
  if (first.find_first_of(" \t\n|&;<>()$`*") != std::string::npos)
    return fmt::format("; a line for the shell is written so: berth {} -- sh -c {}", verb,
                       in_shell_quotes(first));
  const std::string hint = hint_of_file(words, verb);
  return hint.empty() ? hint_of_python(words, verb) : hint;
}

}  // namespace berth::supervise
