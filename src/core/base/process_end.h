#pragma once

namespace berth {

/// How a process ended.
struct ProcessEnd {
  int exit_status = 0;  ///< valid if `signal` is 0; -1: another part of the program has collected it
  int signal = 0;       ///< the signal that killed it, or 0

  bool operator==(const ProcessEnd&) const = default;
};

/// As a shell tells it: 128 plus the signal.
constexpr int shell_status(const ProcessEnd& end) {
  constexpr int kBySignal = 128;
  return end.signal != 0 ? kBySignal + end.signal : end.exit_status;
}

/// The same in the two fields of a record, of which only one is known.
template <class Record>
void set_end(Record& record, const ProcessEnd& end) {
  if (end.signal != 0)
    record.signal = end.signal;
  else
    record.exit_status = end.exit_status;
}

}  // namespace berth
