// How often a device is passed over that is as good as the others.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

#include "berth/verdict/ledger.h"
#include "berth/verdict/test/outcome_stories.h"

namespace berth::false_alarms_test {
namespace {

using namespace test;

constexpr Moment kMin = 60 * kS;

/// A month on a machine of four GPUs: arrays of 40 tasks, one after the other, by the rule as it
/// is.
class Month {
 public:
  explicit Month(unsigned seed) : random_(seed) {}

  /// How many times a device was passed over in so many runs. `fate`: of a task of this array, how
  /// long it takes and how it ends.
  template <class Fate>
  int passings(int runs, Fate fate) {
    for (int begun = 0; begun < runs; ++begun)
      begin_next("a" + std::to_string(begun / 40) + ".py", fate(begun / 40));
    return static_cast<int>(found_.size());
  }

  double uniform(double from, double to) { return std::uniform_real_distribution(from, to)(random_); }

 private:
  struct Running {
    Moment end = 0;
    Told told;
    Moment begun = 0;
    std::string program;
  };

  void begin_next(const std::string& program, std::pair<double, Ending> fate) {
    for (;;) {
      judge();
      for (unsigned gpu = 0; gpu < 4; ++gpu) {
        if (running_[gpu].end != 0 || passed_over_.contains(uuid_of(gpu))) continue;
        const Moment lasts = std::max<Moment>(1, static_cast<Moment>(fate.first * kS));
        running_[gpu] = {now_ + lasts, {0, gpu, "", 0, fate.second}, now_, program};
        return;
      }
      end_next();
    }
  }

  void end_next() {
    Running* next = nullptr;
    for (Running& one : running_) {
      if (one.end != 0 && (next == nullptr || one.end < next->end)) next = &one;
    }
    if (next == nullptr) {
      now_ += kMin;
      return;
    }
    now_ = next->end;
    const PastRun outcome{fingerprint_of(kAlice, next->program),
                          next->begun,
                          next->end - next->begun,
                          next->told.ending,
                          {uuid_of(next->told.gpu)}};
    unsigned& row = in_a_row_[next->told.gpu];
    row = outcome.ending == kBadly && outcome.lasted <= kEndsSoon ? row + 1 : 0;
    alice_.runs.push_back(outcome);
    if (alice_.runs.size() > 80) alice_.runs.erase(alice_.runs.begin(), alice_.runs.begin() + 40);
    next->end = 0;
  }

  void judge() {
    passed_over_.clear();
    const auto may_be = [&](unsigned gpu) { return running_[gpu].end == 0 && in_a_row_[gpu] >= kBadRuns; };
    if (!may_be(0) && !may_be(1) && !may_be(2) && !may_be(3)) return;
    Ledger ledger;
    for (unsigned gpu = 0; gpu < 4; ++gpu) {
      if (running_[gpu].end == 0) continue;
      Ticket lease = lease_of({running_[gpu].begun / kS, gpu, running_[gpu].program.c_str(), kLives, kWell});
      lease.granted_boot_ms = running_[gpu].begun % kS;
      ledger.tickets.push_back(lease);
    }
    passed_over_ = passed_over({alice_}, ledger, snapshot_, kAlice, now_);
    for (const auto& [uuid, one] : passed_over_) found_.emplace(uuid, one.since);
  }

  std::mt19937 random_;
  Moment now_ = 1;
  Snapshot snapshot_ = machine(4).snapshot;
  UserRuns alice_{kAlice, {}};
  Running running_[4];
  unsigned in_a_row_[4] = {};
  std::map<std::string, PassedOver> passed_over_;
  std::set<std::pair<std::string, Moment>> found_;
};

// The sanitizers take their time: the build that ships goes through all of it.
#ifdef NDEBUG
constexpr int kRuns = 100'000;
#else
constexpr int kRuns = 20'000;
#endif

TEST_CASE("of 100,000 runs in arrays of 40, scripts that crash everywhere blame no device") {
  Month month(1);
  int array = -1;
  bool is_broken = false;
  double usual = 0;
  const int passings = month.passings(kRuns, [&](int of) -> std::pair<double, Ending> {
    if (std::exchange(array, of) != of) {
      is_broken = month.uniform(0, 1) < 0.2;
      usual = std::exp(is_broken ? month.uniform(std::log(0.05), std::log(30.0))
                                 : month.uniform(std::log(5.0), std::log(7200.0)));
    }
    return {usual * month.uniform(0.6, 1.4), is_broken ? kBadly : kWell};
  });
  CHECK(passings <= kRuns / 50'000);
}

TEST_CASE("of 100,000 runs that each crash by chance, few are followed by a device that is passed over") {
  Month month(1);
  int array = -1;
  double usual = 0;
  const int passings = month.passings(kRuns, [&](int of) -> std::pair<double, Ending> {
    if (std::exchange(array, of) != of) usual = std::exp(month.uniform(std::log(5.0), std::log(7200.0)));
    const double lasts = usual * month.uniform(0.6, 1.4);
    if (month.uniform(0, 1) < 0.2) return {month.uniform(0, 1) * std::min(lasts, 60.0), kBadly};
    return {lasts, kWell};
  });
  CHECK(passings <= kRuns / 500);
}

}  // namespace
}  // namespace berth::false_alarms_test
