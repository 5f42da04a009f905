#include "berth/queue/acquisition.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "berth/queue/test/asker.h"
#include "property.h"

namespace berth::acquisition::gate_answer_test {
namespace {

constexpr Means kPatient{.waits = true, .last_attempt = false};
constexpr Means kNowOrNever{.waits = false, .last_attempt = false};
constexpr Means kPatientAtLast{.waits = true, .last_attempt = true};
constexpr Means kNowOrNeverAtLast{.waits = false, .last_attempt = true};

struct Case {
  const char* when;
  FoundInGate found;
  FactsAre facts;
  Means means;
  GateAnswer answer;
};

const std::vector<Case>& cases() {
  using enum FoundInGate;
  using enum FactsAre;
  static const std::vector<Case> all{
      {"what is free by facts of now is taken", granted, current, kPatient, GateAnswer::take},
      {"also by one that may not wait", granted, current, kNowOrNever, GateAnswer::take},
      {"also at the last attempt", granted, current, kPatientAtLast, GateAnswer::take},
      {"facts older than a lease grant nothing", granted, older_than_a_lease, kPatient,
       GateAnswer::look_again},
      {"but after many looks, for a look while nobody else can have it", granted, older_than_a_lease,
       kNowOrNeverAtLast, GateAnswer::take_and_look},
      {"nor does a driver that may have been replaced", granted, of_an_old_session, kPatientAtLast,
       GateAnswer::look_again},
      {"who is behind a rival waits", behind, current, kPatient, GateAnswer::wait},
      {"who is first waits if too little is free", blocked, current, kPatient, GateAnswer::wait},
      {"whose own conditions do not hold is skipped", held_back, current, kPatient,
       GateAnswer::wait_held_back},
      {"who may not wait leaves", blocked, current, kNowOrNever, GateAnswer::withdraw},
      {"also if a rival comes first", behind, current, kNowOrNever, GateAnswer::withdraw},
      {"also if only its own conditions do not hold", held_back, current, kNowOrNever, GateAnswer::withdraw},
      {"nobody is refused by old facts at once", blocked, older_than_a_lease, kNowOrNever,
       GateAnswer::look_again},
      {"nor before it is known who locked a device", blocked, silent_about_a_lock, kNowOrNever,
       GateAnswer::look_again},
      {"but after many looks", blocked, older_than_a_lease, kNowOrNeverAtLast, GateAnswer::withdraw},
      {"or waits then", behind, older_than_a_lease, kPatientAtLast, GateAnswer::wait},
      {"and is skipped then", held_back, silent_about_a_lock, kPatientAtLast, GateAnswer::wait_held_back},
  };
  return all;
}

TEST_CASE("what a request does in the gate") {
  for (const Case& each : cases()) {
    CAPTURE(each.when);
    CHECK(answer_in_gate(each.found, each.facts, each.means) == each.answer);
  }
}

/// A patient request for one of two GPUs. Others take, wait, stop and leave between its steps.
class History {
 public:
  void goes_on() {
    const Action action = asker_.action;
    if (const auto* grant = std::get_if<Grant>(&action)) {
      // It does not fit.
      RC_ASSERT(grant->by_old_facts);
      asker_.tell(Woken::changed);
    } else if (is<Look>(action)) {
      asker_.changes_before = asker_.changes_now;
      asker_.looks();
    } else if (is<Join>(action) || is<EnterGate>(action)) {
      if (is<Join>(action)) ++joins_;
      passes_the_gate();
    } else if (is<AskNames>(action)) {
      asker_.is_told_the_names();
    } else if (is<Pause>(action)) {
      asker_.tell(Paused{});
    } else if (is<SleepBehind>(action) || is<SleepUntilReleased>(action)) {
      asker_.now += 5s;
      asker_.tell(*rc::gen::element(Woken::changed, Woken::tick, Woken::not_asleep));
    }
    RC_ASSERT(!is<Refuse>(asker_.action));
    RC_ASSERT(!is<Fail>(asker_.action));
    RC_ASSERT(joins_ <= 1);
  }
  void others_do_something() {
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        takes(*rc::gen::inRange(0, 2));
        break;
      case 1:
        ends_one();
        break;
      case 2:
        joins_before_me();
        break;
      case 3:
        leaves();
        break;
      default:
        stops_or_goes_on();
        break;
    }
  }
  bool is_over() const { return asker_.action == Action(Grant{}); }

 private:
  bool is_free(const std::string& uuid) const {
    return std::ranges::none_of(asker_.leases, [&](const Ticket& lease) {
      return std::ranges::find(lease.devices, uuid) != lease.devices.end();
    });
  }
  void takes(int device) {
    if (!is_free(uuid_of(device))) return;
    asker_.leases.push_back(lease(100 + ++numbers_, uuid_of(device)));
    ++asker_.changes_now;
  }
  void ends_one() {
    if (asker_.leases.empty()) return;
    asker_.leases.pop_back();
    ++asker_.changes_now;
  }
  // As in the store: all that came before it were there when it joined.
  void joins_before_me() {
    if (joins_ == 0 && asker_.earlier.size() < 4) asker_.earlier.push_back(waiter(1 + asker_.earlier.size()));
  }
  void leaves() {
    if (asker_.earlier.empty()) return;
    asker_.stopped.erase(asker_.earlier.back().id);
    asker_.earlier.pop_back();
  }
  void stops_or_goes_on() {
    if (asker_.earlier.empty()) return;
    const TicketId nearest = asker_.earlier.back().id;
    if (asker_.stopped.erase(nearest) == 0) asker_.stopped = {nearest};
  }
  void passes_the_gate() {
    const auto decision = asker_.decides();
    RC_ASSERT(decision.has_value());
    RC_ASSERT(!std::holds_alternative<Withdraw>(*decision));
    if (const auto* take = std::get_if<Take>(&*decision)) {
      for (const std::string& uuid : take->devices) RC_ASSERT(is_free(uuid));
      std::size_t free = 0;
      for (const int device : {0, 1}) free += is_free(uuid_of(device)) ? 1 : 0;
      RC_ASSERT(asker_.earlier.size() - asker_.stopped.size() < free);
      asker_.tell(LeftGate{Taken{}});
      return;
    }
    asker_.tell(LeftGate{Stayed{}});
  }

  Asker asker_{patient()};
  std::uint64_t numbers_ = 0;
  int joins_ = 0;
};

TEST_CASE("whatever others do, nothing is taken that has a holder, nobody is passed, and no place is lost") {
  holds_for_any([] {
    History history;
    for (int step = 0; step < 60 && !history.is_over(); ++step) {
      if (*rc::gen::inRange(0, 3) == 0) history.others_do_something();
      history.goes_on();
    }
  });
}

}  // namespace
}  // namespace berth::acquisition::gate_answer_test
