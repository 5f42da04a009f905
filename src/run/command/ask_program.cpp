#include "berth/command/ask_program.h"

#include <csignal>
#include <utility>

#include "berth/base/printable.h"
#include "berth/sys/file.h"
#include "berth/sys/newer_calls.h"
#include "berth/sys/system_error.h"

namespace berth::command {
namespace {

constexpr std::string_view kOurName = "berth: ";

Result<Said> ask(std::string program, std::vector<std::string> words, std::chrono::milliseconds patience,
                 std::size_t most_bytes, bool kills_late) {
  const sys::Descriptor out = sys::memory_file("berth-out");
  const sys::Descriptor err = sys::memory_file("berth-err");
  if (!out || !err) return sys::fail_errno("making a place for what a program says");
  BERTH_LET(auto child, sys::Child::spawn({.program = std::move(program),
                                           .arguments = std::move(words),
                                           .output = out.get(),
                                           .error = err.get()}));
  Said said;
  said.ending = child.wait(patience);
  if (!said.ending && kills_late) child.kill(SIGKILL);
  BERTH_LET(said.out, sys::read_start(out.get(), most_bytes));
  BERTH_LET(said.err, sys::read_start(err.get(), most_bytes));
  return said;
}

}  // namespace

Result<Said> ask_program(std::string program, std::vector<std::string> words,
                         std::chrono::milliseconds patience, std::size_t most_bytes) {
  return ask(std::move(program), std::move(words), patience, most_bytes, false);
}

Result<Said> ask_program_in_time(std::string program, std::vector<std::string> words,
                                 std::chrono::milliseconds patience, std::size_t most_bytes,
                                 std::string_view late) {
  BERTH_LET(auto said, ask(std::move(program), std::move(words), patience, most_bytes, true));
  if (!said.ending) return fail(ErrorCode::timed_out, std::string(late));
  return said;
}

std::string first_line(std::string_view said) {
  std::string_view line = said.substr(0, said.find('\n'));
  if (line.starts_with(kOurName)) line.remove_prefix(kOurName.size());
  return printable(line);
}

}  // namespace berth::command
