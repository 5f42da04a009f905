// All wiring of the program: the command line names a row of the table in commands.cpp; what needs
// the driver has its probe started here, so that the driver is loaded while the options are read.
#include <malloc.h>

#include "berth/cli/invocation.h"

int main(int argc, char** argv) {
  using namespace berth::cli;
  // The thread that writes a receipt would have an arena of its own, which costs more than the
  // receipt. Where threads allocate a lot, as for a list of jobs, they are given more.
  ::mallopt(M_ARENA_MAX, 1);
  berth::command::keep_standard_descriptors();
  berth::command::survive_limit_on_file_sizes();
  const std::span<char*> words(argv + 1, argc > 0 ? static_cast<std::size_t>(argc - 1) : 0);
  const auto invocation = read_invocation(words);
  if (!invocation) return berth::command::report(std::unexpected(invocation.error()));
  if (does_more_than_look(*invocation)) berth::command::hear_signals();
  berth::command::Environment environment(words);
  if (wants_probe(*invocation)) environment.fork_probe();
  return report(perform(*invocation, environment));
}
