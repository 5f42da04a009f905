#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/words.h"
#include "berth/verdict/queue_rules.h"

namespace berth {

/// How a run ended.
enum class Ending {
  well,
  badly,      ///< by itself: with a status that says failure, or by a crash
  by_others,  ///< somebody ended it: a cancel, a time limit, a waiter, a signal from outside
  included,   ///< no run: somebody wants these devices to be used again
  no_cuda,    ///< no run: CUDA did not start there when it was tried before a run
};
constexpr auto words_of(Ending) {
  return std::to_array<std::string_view>({"well", "badly", "by_others", "included", "no_cuda"});
}

/// What became of one run of a command that had devices. Moments are those of the boot clock.
struct PastRun {
  std::uint64_t fingerprint = 0;  ///< of its command, as fingerprint_of
  Moment begun = 0;
  Moment lasted = 0;
  Ending ending = Ending::well;
  std::vector<std::string> devices{};  ///< their UUIDs

  bool operator==(const PastRun&) const = default;
};

/// What one user's runs came to, in the order in which they were noted.
struct UserRuns {
  std::uint32_t uid = 0;
  std::vector<PastRun> runs;

  bool operator==(const UserRuns&) const = default;
};

/// Says which runs are of the same program: a hash of user, program and script. Other words of the
/// command line do not count, nor do numbers in a script that is itself a word (sh -c '…'), so that
/// the tasks of an array are alike.
std::uint64_t fingerprint_of(std::uint32_t uid, std::string_view command);

/// Says which of these runs were asked for the same: all words of the command line count, but
/// numbers and paths in them do not.
std::uint64_t shape_of(std::uint32_t uid, std::string_view command);

/// What people call the program that the fingerprint means: "train.py".
std::string told_program(std::string_view command);

}  // namespace berth
