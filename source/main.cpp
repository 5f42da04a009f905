#include <unistd.h>

#include "berth/source/probe/probe.h"

int main(int count, char** arguments) {
  const auto kind = count > 2 ? berth::source::source_kind_from_text(arguments[2]) : std::nullopt;
  _exit(berth::source::run_probe(STDIN_FILENO, STDOUT_FILENO,
                                 kind.value_or(berth::source::SourceKind::automatic)));
}
