#include "berth/sys/process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

namespace berth::sys::process_title_test {
namespace {

/// How a fork of this process is shown that calls itself so, and whether its environment is still
/// what it was.
struct Shown {
  std::string command;
  bool keeps_environment = false;
};
Shown shown_as(const std::string& words) {
  std::string before;
  for (char** each = environ; *each != nullptr; ++each) before.append(*each).push_back('\n');
  std::array<int, 2> input{};
  std::array<int, 2> output{};
  REQUIRE(pipe2(input.data(), O_CLOEXEC) == 0);
  REQUIRE(pipe2(output.data(), O_CLOEXEC) == 0);
  const Descriptor reader(output[0]);
  Descriptor goes_on(input[1]);
  auto child = Child::fork({input[0], output[1], -1}, [&] {
    show_as(words);
    std::string after;
    for (char** each = environ; *each != nullptr; ++each) after.append(*each).push_back('\n');
    char byte = after == before ? 'y' : 'n';
    [[maybe_unused]] const ssize_t told = write(1, &byte, 1);
    _exit(read(0, &byte, 1) == 0 ? 0 : 1);
  });
  close(input[0]);
  close(output[1]);
  REQUIRE(child);
  char byte = 0;
  REQUIRE(read(reader.get(), &byte, 1) == 1);
  Shown shown{process_command(child->pid()), byte == 'y'};
  goes_on.close();
  CHECK(child->wait(std::chrono::seconds(30)) == ProcessEnd{});
  return shown;
}

TEST_CASE("a fork is shown with a command line of its own, shorter or longer, and keeps its environment") {
  for (const std::string& words : {std::string("a b"), "a " + std::string(300, 'b')}) {
    const Shown shown = shown_as(words);
    CHECK(shown.command == words);
    CHECK(shown.keeps_environment);
  }
}

}  // namespace
}  // namespace berth::sys::process_title_test
