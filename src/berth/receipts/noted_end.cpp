#include "berth/receipts/noted_end.h"

#include <algorithm>
#include <array>
#include <csignal>

namespace berth::receipts {
namespace {

// A shell says by such a status that there is no such program, and by a higher one which signal
// ended it.
constexpr int kCannotStart = 126;
constexpr int kNotFound = 127;
constexpr int kSignal = 128;

Ending ending_by(int signal) {
  constexpr std::array<int, 7> kCrashes{SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
  return std::ranges::find(kCrashes, signal) == kCrashes.end() ? Ending::by_others : Ending::badly;
}

}  // namespace

Ending ending_of(const sys::JobEnding& ending) {
  if (ending.signal != 0) return ending_by(ending.signal);
  if (ending.exit_status == 0) return Ending::well;
  if (ending.exit_status == kCannotStart || ending.exit_status == kNotFound) return Ending::by_others;
  if (ending.exit_status > kSignal && ending.exit_status <= kSignal + SIGSYS)
    return ending_by(ending.exit_status - kSignal);
  return Ending::badly;
}

}  // namespace berth::receipts
