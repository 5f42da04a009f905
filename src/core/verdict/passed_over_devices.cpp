#include "berth/verdict/ledger.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"

namespace berth {
namespace {

/// A run on devices that are known by number.
struct Run {
  std::uint64_t fingerprint = 0;
  Moment begun = 0;
  Moment end = 0;  ///< kNever: it still lives
  Ending ending = Ending::well;
  std::vector<std::size_t> devices;

  Moment lasted(Moment now) const { return std::min(end, now) - begun; }
};

using Indices = std::vector<std::size_t>;

bool meet(const Indices& a, const Indices& b) {
  return std::ranges::any_of(a, [&](std::size_t place) { return std::ranges::find(b, place) != b.end(); });
}

bool is_bad(const PastRun& run) {
  return run.ending == Ending::badly && run.lasted <= kEndsSoon;
}

bool is_bad(const Run& run) {
  return is_bad(PastRun{.begun = run.begun, .lasted = run.end - run.begun, .ending = run.ending});
}

bool is_believed(const PastRun& run, Moment now) {
  return run.begun >= 0 && run.lasted >= 0 && run.begun <= now && run.lasted <= now - run.begun;
}

bool is_a_run(const Run& run) {
  return run.ending != Ending::included && run.ending != Ending::no_cuda;
}

bool has_lived(const Run& run) {
  return run.ending == Ending::well || run.end - run.begun > kEndsSoon;
}

/// Gives each UUID a number.
class Numbers {
 public:
  std::size_t of(const std::string& uuid) {
    const auto [known, is_new] = numbers_.try_emplace(uuid, uuids_.size());
    if (is_new) uuids_.push_back(uuid);
    return known->second;
  }
  Indices of(const std::vector<std::string>& uuids) {
    Indices indices;
    for (const std::string& uuid : uuids) indices.push_back(of(uuid));
    return indices;
  }
  const std::string& uuid(std::size_t number) const { return uuids_[number]; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> uuids_;
};

Moment longer(Moment period) {
  return std::min(2 * period, kLongestPassing);
}

using Three = std::array<const Run*, kBadRuns>;

/// The runs of one user.
class Runs {
 public:
  Runs(const UserRuns& user, const std::vector<PastRun>& for_all, const Ledger& ledger, Moment now,
       Numbers& numbers)
      : now_(now) {
    for (const std::vector<PastRun>* noted : {&user.runs, &for_all}) {
      for (const PastRun& outcome : *noted) {
        // The file may be of another boot, or its owner may have written anything.
        if (!is_believed(outcome, now)) continue;
        runs_.push_back({outcome.fingerprint, outcome.begun, outcome.begun + outcome.lasted, outcome.ending,
                         numbers.of(outcome.devices)});
      }
    }
    for (const Ticket& ticket : ledger.tickets) {
      if (ticket.phase != TicketPhase::granted || ticket.uid != user.uid || granted_at(ticket) > now)
        continue;
      runs_.push_back({fingerprint_of(ticket.uid, ticket.command), granted_at(ticket), kNever, Ending::well,
                       numbers.of(ticket.devices)});
    }
    std::ranges::stable_sort(runs_, {}, &Run::end);
  }

  /// `here`: a device, or all that are on one card.
  std::optional<PassedOver> judge(const Indices& here, const Numbers& numbers) const {
    std::vector<const Run*> bad;     // in a row
    std::set<std::uint64_t> lived;   // the programs that have lived here
    std::optional<Passing> passing;  // the last one, over or not
    Moment period = kFirstPassing;
    for (const Run& run : runs_) {
      if (!meet(run.devices, here)) continue;
      if (run.end == kNever) {
        if (run.lasted(now_) > kEndsSoon) return std::nullopt;
        continue;
      }
      if (run.ending == Ending::no_cuda) {
        period = passing ? longer(period) : kFirstPassing;
        passing = Passing{std::nullopt, run.end, run.end + period};
        continue;
      }
      if (!is_bad(run)) {
        bad.clear();
        if (!has_lived(run) && run.ending != Ending::included) continue;
        if (run.ending != Ending::included) lived.insert(run.fingerprint);
        passing.reset();
        period = kFirstPassing;
        continue;
      }
      bad.push_back(&run);
      if (bad.size() < kBadRuns) continue;
      Three three;
      std::ranges::copy(std::span(bad).last(kBadRuns), three.begin());
      const bool has_lived_here =
          std::ranges::any_of(three, [&](const Run* one) { return lived.contains(one->fingerprint); });
      if (has_lived_here && bad.size() == kBadRuns) continue;
      // A run that began before says nothing of a try.
      if (passing && run.begun < passing->since) {
        if (passing->three) passing->three = three;
        continue;
      }
      const bool was_tried = passing && is_justified(*passing, here, run.begun);
      period = was_tried ? longer(period) : period;
      passing = Passing{three, run.end, run.end + period};
    }
    if (!passing || now_ >= passing->until) return std::nullopt;
    PassedOver found{.since = passing->since, .until = passing->until, .no_cuda = !passing->three};
    if (found.no_cuda) return found;
    const auto lives_on = witness(*passing->three, here, now_);
    if (!lives_on || bad.size() < kBadRuns) return std::nullopt;
    found.longest = longest_of(*passing->three);
    found.lives_on = numbers.uuid(*lives_on);
    return found;
  }

 private:
  struct Passing {
    std::optional<Three> three{};  ///< nullopt: CUDA did not start
    Moment since = 0;
    Moment until = 0;
  };

  static Moment longest_of(const Three& three) {
    Moment longest = 0;
    for (const Run* run : three) longest = std::max(longest, run->end - run->begun);
    return longest;
  }

  /// A device elsewhere on which the programs of the three runs have lived, as it was known at
  /// `then`. nullopt: one of the programs has not lived elsewhere, or has ended badly elsewhere
  /// too.
  std::optional<std::size_t> witness(const Three& three, const Indices& here, Moment then) const {
    const Moment enough = 2 * longest_of(three);
    std::optional<std::size_t> found;
    std::set<std::uint64_t> lived;
    // The newest first: they mostly have the answer.
    for (const Run& run : std::views::reverse(runs_)) {
      const auto* first = std::ranges::find(three, run.fingerprint, &Run::fingerprint);
      if (first == three.end() || run.begun > then || meet(run.devices, here)) continue;
      if (run.devices.empty() || !is_a_run(run)) continue;
      const bool has_ended = run.end <= then;
      if (has_ended && is_bad(run) && run.end >= three.front()->begun) return std::nullopt;
      if (has_ended && (is_bad(run) || run.end < (*first)->end)) continue;
      if (run.lasted(then) < enough) continue;
      lived.insert(run.fingerprint);
      if (!found) found = run.devices.front();
    }
    const bool all =
        std::ranges::all_of(three, [&](const Run* run) { return lived.contains(run->fingerprint); });
    return all ? found : std::nullopt;
  }

  bool is_justified(const Passing& passing, const Indices& here, Moment then) const {
    return !passing.three || witness(*passing.three, here, then).has_value();
  }

  Moment now_;
  std::vector<Run> runs_;
};

/// The devices on which so many bad runs followed each other that they may be blamed, or CUDA did
/// not start. Cheap, and mostly none.
std::set<std::string_view> worth_judging(const UserRuns& user) {
  std::map<std::string_view, std::size_t> rows;
  std::set<std::string_view> found;
  for (const PastRun& run : user.runs) {
    for (const std::string& uuid : run.devices) {
      std::size_t& row = rows[uuid];
      row = is_bad(run) ? row + 1 : 0;
      if (row >= kBadRuns || run.ending == Ending::no_cuda) found.insert(uuid);
    }
  }
  return found;
}

/// The numbers of all devices on the card of this one, if it is a MIG instance.
Indices on_card_of(const Device& device, const Snapshot& snapshot, Numbers& numbers) {
  if (!device.mig) return {};
  Indices indices{numbers.of(device.mig->parent_uuid)};
  for (const Device& other : snapshot.devices) {
    if (other.mig && other.mig->parent_uuid == device.mig->parent_uuid)
      indices.push_back(numbers.of(other.uuid));
  }
  return indices;
}

/// A device that root includes again is included for all; one that a user includes, for that user.
std::vector<PastRun> included_for(std::uint32_t uid, const std::vector<UserRuns>& outcomes) {
  std::vector<PastRun> included;
  for (const UserRuns& user : outcomes) {
    if (user.uid != 0 && user.uid != uid) continue;
    std::ranges::copy_if(user.runs, std::back_inserter(included),
                         [](const PastRun& outcome) { return outcome.ending == Ending::included; });
  }
  return included;
}

/// The devices that the runs of this user speak against.
std::map<std::string, PassedOver> judged_by(const UserRuns& user, const std::vector<PastRun>& included,
                                            const Ledger& ledger, const Snapshot& snapshot, Moment now) {
  std::map<std::string, PassedOver> found;
  const std::set<std::string_view> doubtful = worth_judging(user);
  const bool is_any_split =
      std::ranges::any_of(snapshot.devices, [](const Device& device) { return device.mig.has_value(); });
  if (doubtful.empty() && !is_any_split) return found;
  Numbers numbers;
  const Runs runs(user, included, ledger, now, numbers);
  for (const Device& device : snapshot.devices) {
    // Of MIG instances, those of one card count together.
    if (!device.mig && !doubtful.contains(device.uuid)) continue;
    auto judged = runs.judge({numbers.of(device.uuid)}, numbers);
    if (const Indices card = on_card_of(device, snapshot, numbers); !judged && !card.empty())
      judged = runs.judge(card, numbers);
    if (judged) found.emplace(device.uuid, *std::move(judged));
  }
  return found;
}

}  // namespace

std::map<std::string, PassedOver> passed_over(const std::vector<UserRuns>& outcomes, const Ledger& ledger,
                                              const Snapshot& snapshot, std::uint32_t asker, Moment now) {
  const std::vector<PastRun> included = included_for(asker, outcomes);
  std::map<std::string, PassedOver> found;
  std::map<std::string, std::vector<PassedOver>> by_others;
  for (const UserRuns& user : outcomes) {
    for (auto& [uuid, judged] : judged_by(user, included, ledger, snapshot, now)) {
      if (user.uid == asker)
        found.emplace(uuid, judged);
      else
        by_others[uuid].push_back(judged);
    }
  }
  constexpr std::size_t kAgree = 2;
  for (auto& [uuid, said] : by_others) {
    if (said.size() < kAgree || found.contains(uuid)) continue;
    // The devices are passed over for as long as two users' runs say so.
    std::ranges::sort(said, std::greater<>(), &PassedOver::until);
    said[kAgree - 1].by_others = true;
    found.emplace(uuid, said[kAgree - 1]);
  }
  return found;
}

std::map<std::uint32_t, std::map<std::string, PassedOver>> passed_over_by_users(
    const std::vector<UserRuns>& outcomes, const Ledger& ledger, const Snapshot& snapshot, Moment now) {
  std::map<std::uint32_t, std::map<std::string, PassedOver>> found;
  for (const UserRuns& user : outcomes) {
    if (auto judged = judged_by(user, included_for(user.uid, outcomes), ledger, snapshot, now);
        !judged.empty())
      found.emplace(user.uid, std::move(judged));
  }
  return found;
}

std::string why_passed_over(const PassedOver& passed, const Snapshot& snapshot) {
  if (passed.no_cuda)
    return fmt::format("CUDA did not start on it{}; `berth doctor` says why",
                       passed.by_others ? " for two users" : "");
  const Device* elsewhere = find_device(snapshot, passed.lives_on);
  return fmt::format("the last {} runs on it{} ended badly within {}, and the same program lives on {}",
                     kBadRuns, passed.by_others ? " of each of two users" : "",
                     duration_for_people(std::max<std::int64_t>(1, (passed.longest + 999) / 1000)),
                     elsewhere == nullptr ? "another GPU" : fmt::format("GPU {}", label(*elsewhere)));
}

std::map<std::string, unsigned> bad_runs_in_a_row(const UserRuns& own, Moment now) {
  std::map<std::string, unsigned> found;
  std::set<std::string_view> known;  // of which the row has ended, or is too old
  for (const PastRun& run : std::views::reverse(own.runs)) {
    if (!is_believed(run, now)) continue;
    for (const std::string& uuid : run.devices) {
      if (known.contains(uuid)) continue;
      const bool goes_on = found.contains(uuid) || now - run.begun - run.lasted < kFirstPassing;
      if ((is_bad(run) && goes_on) || run.ending == Ending::no_cuda)
        ++found[uuid];
      else
        known.insert(uuid);
    }
  }
  return found;
}

}  // namespace berth
