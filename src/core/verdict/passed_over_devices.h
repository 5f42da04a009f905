#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "berth/device/snapshot.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/outcomes.h"

// Which devices are passed over because runs on them ended badly, or because CUDA did not start
// there.
namespace berth {

/// A device that requests pass over, since what ran on it ended badly and lives elsewhere.
struct PassedOver {
  Moment since = 0;
  Moment until = 0;
  Moment longest = 0;        ///< how long the longest of its last runs took
  std::string lives_on{};    ///< the UUID of a device on which the same program lived
  bool no_cuda = false;      ///< since CUDA did not start on it: the two before say nothing
  bool by_others = false;    ///< by the runs of two other users, and not by those of the one who asks
  std::string until_text{};  ///< `until` on the clock of the one who asks

  bool operator==(const PassedOver&) const = default;
};

/// The user for whom a device is passed over, as it is told to others.
struct PassedOverFor {
  std::uint32_t uid = 0;
  std::string user{};        ///< "": not known
  std::int64_t until_s = 0;  ///< seconds since the epoch
  std::string reason{};      ///< as why_passed_over

  bool operator==(const PassedOverFor&) const = default;
};

/// How often runs have to end badly, one after the other, and how soon.
inline constexpr std::size_t kBadRuns = 3;
inline constexpr Moment kEndsSoon = 60'000;
inline constexpr Moment kFirstPassing = 600'000;
inline constexpr Moment kLongestPassing = 24LL * 3'600'000;

/// The devices of the snapshot that requests of `asker` pass over, by their UUID.
///
/// A device is passed over if its last three runs ended badly, each by itself and within a minute;
/// if each of their programs has since had a run on another device that took at least twice as long
/// as the longest of the three, or still lives; and if none of these programs has ended so
/// elsewhere meanwhile. So a program that fails everywhere blames no device. If one of them has
/// lived on this device before, it takes four such runs: a program that sometimes crashes would
/// else blame it too often. The device is passed over for ten minutes, and for twice as long after
/// each try that ends badly again, up to a day; a run that lives makes that ten minutes again.
///
/// The runs of `asker` count at once. Those of others count if two users' runs say the same, each
/// by itself. A device on which CUDA did not start is passed over for as long, without any other
/// device to speak for it. A MIG instance is judged by its own runs, and by those of all instances
/// of its GPU. `ledger`: of which the leases are the runs that still live.
std::map<std::string, PassedOver> passed_over(const std::vector<UserRuns>& outcomes, const Ledger& ledger,
                                              const Snapshot& snapshot, std::uint32_t asker, Moment now);

/// For each user, the devices that this user's own runs speak against, as passed_over finds them,
/// by UUID.
std::map<std::uint32_t, std::map<std::string, PassedOver>> passed_over_by_users(
    const std::vector<UserRuns>& outcomes, const Ledger& ledger, const Snapshot& snapshot, Moment now);

/// Why, without until when: "the last 3 runs on it ended badly within 2 s, and the same program
/// lives on GPU 1".
std::string why_passed_over(const PassedOver& passed, const Snapshot& snapshot);

/// How many of a user's last runs on a device ended badly, one after the other, the last of them
/// within ten minutes; by UUID, and only where it is one or more. That CUDA did not start counts as
/// one, however long ago. Such a device is chosen last: else each run would be tried on it, and
/// nobody would learn that the program lives elsewhere.
std::map<std::string, unsigned> bad_runs_in_a_row(const UserRuns& own, Moment now);

}  // namespace berth
