#include "berth/supervise/model/leased_run_step.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "property.h"

namespace berth::leased_run_random_test {
namespace {

using namespace supervise::leased_run;
using supervise::leased_run::Moment;  // and not that of the queue
using namespace std::chrono_literals;

constexpr Moment kNever = 10'000h;
// After all that is planned.
constexpr Moment kLongest = 3000s;
// One thing is done at a time, and each may be somewhat late.
constexpr Moment kLate = 500ms;

/// A process of the command, or the command itself, which is the first.
struct Being {
  Moment born{};
  Moment dies_at = kNever;
  bool heeds = true;  ///< SIGTERM
  bool lives = true;
  int asked = 0;  ///< how often it got SIGTERM
};

/// A command in its lease, and everything that may happen to it. It checks what may be seen from
/// outside, and says nothing of how the step works.
class History {
 public:
  void go() {
    rules_ = {.grace = seconds(40), .end_with_command = one_in(4)};
    if (one_in(2)) rules_.idle_leftovers = 1s + seconds(30);
    if (one_in(2)) time_ = 1s + seconds(300);
    state_ = begin(time_, now_);
    beings_.push_back(being(one_in(4) ? kNever : seconds(200)));
    happen(CommandBegun{});
    plan();
    for (int steps = 0; !is_over(); ++steps) {
      RC_ASSERT((steps < 20'000));
      if (is_noted_) look();
      if (!is_over()) wait();
    }
    check_end();
    // No second end, whatever comes late.
    for (const Event& what : {Event(EndAsked{}), Event(DevicesWanted{1s}), Event(Woke{}),
                              Event(Looked{ProcessesSeen::nothing}), Event(ToldToLeave{})})
      happen(what);
  }

 private:
  static int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
  static bool one_in(int count) { return below(count) == 0; }
  static Moment seconds(int most) { return Moment(below(most * 1000)); }

  Being being(Moment lasts) const {
    return {.born = now_, .dies_at = now_ + lasts, .heeds = !one_in(3), .lives = true, .asked = 0};
  }

  enum class Deed { release, cancel, want, extend, spawn, leave };

  void plan() {
    const int deeds = below(12);
    Moment at{};
    for (int i = 0; i < deeds; ++i) {
      // Often one soon after another.
      at = one_in(2) ? at + seconds(3) : seconds(500);
      deeds_.emplace_back(at, *rc::gen::element(Deed::release, Deed::cancel, Deed::want, Deed::extend,
                                                Deed::spawn, Deed::spawn, Deed::spawn, Deed::leave));
    }
    std::ranges::sort(deeds_);
  }

  Being& command() { return beings_.front(); }
  bool is_over() const { return std::holds_alternative<Over>(state_.stage); }
  bool has_ended() const { return !beings_.front().lives; }
  bool any_lives() const {
    return std::ranges::any_of(beings_, [](const Being& each) { return each.lives; });
  }

  // --- the world

  // Until something is due or happens, or somewhat later: a machine may be busy.
  void wait() {
    Moment until = kNever;
    for (const Being& each : beings_) {
      if (each.lives) until = std::min(until, each.dies_at);
    }
    if (!deeds_.empty()) until = std::min(until, deeds_.front().first);
    const auto due = next_due(state_, now_);
    const auto end = next_end(state_);
    RC_ASSERT((!end || *end >= *due));
    until = std::max(now_, due ? std::min(until, *due) : until);
    // What stays for ever is ended by hand.
    if (std::max(now_, until) > kLongest) return kill_all();
    now_ = until + (one_in(4) ? Moment(below(50)) : 0ms);
    const bool ran = command().lives;
    die();
    std::optional<EndAsked> asked;
    if (ran && has_ended() && one_in(4)) asked = note_asked(one_in(2));
    while (!deeds_.empty() && deeds_.front().first <= now_) {
      const Deed deed = std::exchange(deeds_, {deeds_.begin() + 1, deeds_.end()}).front().second;
      // A call that comes as the command ends is told with that.
      if (ran && has_ended())
        asked = asked ? asked : note_last_call(deed);
      else
        act(deed);
    }
    if (has_ended() && !is_noted_) {
      happen(CommandEnded{asked});
      RC_ASSERT(is_noted_);
      check_asked();
      return;
    }
    happen(Woke{});
    check_asked();
  }

  void kill_all() {
    for (Being& each : beings_) each.dies_at = now_;
    die();
    if (!is_noted_) happen(CommandEnded{});
  }

  void die() {
    for (Being& each : beings_) {
      if (each.lives && each.dies_at <= now_) each.lives = false;
    }
  }

  void act(Deed deed) {
    if (deed == Deed::release || deed == Deed::cancel) happen(*note_asked(deed == Deed::cancel));
    if (deed == Deed::want && !std::exchange(wanted_, true)) {
      gave_way_ = !has_ended() && !asked_at_;
      happen(DevicesWanted{seconds(400)});
      RC_ASSERT((is_over() || killed_by_ < kNever));
    }
    if (deed == Deed::extend && time_) time_ = *time_ + seconds(200);
    // What lives starts another one.
    if (deed == Deed::spawn && any_lives()) beings_.push_back(being(one_in(3) ? kNever : seconds(300)));
    if (deed == Deed::leave) {
      const ToldToLeave told{.by_hang_up = one_in(2)};
      const bool may = is_noted_ && !is_over() && !(told.by_hang_up && killed_by_ < kNever);
      has_left_ = has_left_ || may;
      happen(told);
      RC_ASSERT((is_over() == may));
    }
  }

  std::optional<EndAsked> note_last_call(Deed deed) {
    if (deed != Deed::release && deed != Deed::cancel) return std::nullopt;
    return note_asked(deed == Deed::cancel);
  }
  std::optional<EndAsked> note_asked(bool is_cancel) {
    ++asks_;
    if (!asked_at_) asked_at_ = now_;
    if (is_cancel) note_kill(kTimeForOwnRest + rules_.grace);
    return EndAsked{is_cancel};
  }
  // By then SIGKILL has come.
  void note_kill(Moment within) {
    if (!asked_at_) asked_at_ = now_;
    killed_by_ = std::min(killed_by_, now_ + within);
  }

  void ask(Being& each) {
    if (!each.lives) return;
    ++each.asked;
    if (each.heeds) each.dies_at = std::min(each.dies_at, now_ + seconds(3));
  }

  void send(EndAction what) {
    // Nobody gets a signal who was not to get one.
    RC_ASSERT((what == EndAction::nothing || asked_at_));
    if (what == EndAction::ask_command) {
      RC_ASSERT(!has_ended());
      ask(command());
    }
    for (Being& each : beings_) {
      if (what == EndAction::ask_again || (what == EndAction::ask_rest && each.asked == 0)) ask(each);
      if (what == EndAction::kill && each.lives) {
        RC_ASSERT((each.asked > 0 || each.born >= *asked_at_));
        each.lives = false;
      }
    }
  }

  // A process that ends during a look may have started another one that the look does not see.
  void look() {
    for (;;) {
      die();
      ProcessesSeen seen = any_lives() ? ProcessesSeen::something : ProcessesSeen::nothing;
      const auto living = std::ranges::count_if(beings_, [](const Being& each) { return each.lives; });
      if (living == 1 && one_in(4)) {
        for (Being& each : beings_) each.lives = false;
        beings_.push_back(being(one_in(3) ? kNever : seconds(100)));
        seen = ProcessesSeen::perhaps_nothing;
      } else if (living == 0 && one_in(4)) {
        seen = ProcessesSeen::perhaps_nothing;
      }
      looks_again_ = false;
      if (one_in(8)) act(Deed::release);
      happen(Looked{seen});
      if (!looks_again_) return;
    }
  }

  // --- what the step says

  void happen(const Event& what) {
    const bool was_over = is_over();
    const Step step = next(rules_, state_, {now_, what});
    state_ = step.state;
    const bool does_nothing = std::holds_alternative<Nothing>(step.action);
    RC_ASSERT((!was_over || does_nothing));
    std::visit([this](const auto& action) { perform(action); }, step.action);
  }

  void perform(const Nothing&) {}
  void perform(const Send& action) { send(action.what); }
  void perform(const EndForTime& action) {
    RC_ASSERT(!std::exchange(is_time_over_, true));
    RC_ASSERT((action.time == *time_ && now_ >= *time_));
    note_kill(rules_.grace);
    send(action.what);
  }
  void perform(const EndForWaiter& action) {
    RC_ASSERT((killed_by_ == kNever || !has_ended()));
    note_kill(action.grace);
    send(action.what);
  }
  void perform(const ReadTime&) { happen(TimeRead{time_}); }
  void perform(const Warn& action) {
    RC_ASSERT(!is_time_over_);
    RC_ASSERT((action.time == *time_ && action.left == *time_ - now_));
  }
  void perform(const EndWatch&) { RC_ASSERT((!std::exchange(watch_ended_, true) && !has_ended())); }
  void perform(const NoteEnd& action) {
    RC_ASSERT(!std::exchange(is_noted_, true));
    RC_ASSERT(has_ended());
    was_asked_ = asked_at_.has_value();
    send(action.what);
  }
  void perform(const LookAgain&) { looks_again_ = true; }
  void perform(const TellEnd&) {
    RC_ASSERT((is_noted_ && !std::exchange(end_is_told_, true)));
    computed_at_ = now_;
  }
  void perform(const AskDriver&) {
    const bool computes = one_in(3);
    if (computes) computed_at_ = now_;
    happen(DriverAsked{computes});
  }
  void perform(const TellLeft& action) {
    RC_ASSERT((killed_by_ == kNever));
    RC_ASSERT((action.were_asked == asked_at_.has_value()));
    RC_ASSERT(any_lives());
  }
  void perform(const GiveBack& action) {
    using Why = GiveBack::Why;
    RC_ASSERT((is_noted_ && has_ended()));
    // What is going to be killed is waited for.
    RC_ASSERT(((action.why == Why::nothing_left ? !any_lives() : killed_by_ == kNever)));
    RC_ASSERT((action.why != Why::with_command || rules_.end_with_command));
    RC_ASSERT((action.why != Why::idle ||
               (rules_.idle_leftovers && now_ - computed_at_ >= *rules_.idle_leftovers)));
  }
  void perform(const Leave&) { RC_ASSERT(is_noted_); }

  // --- what must hold

  // What had begun when somebody first asked has heard of it: the command at once, the rest when it
  // has had time to end by itself.
  void check_asked() const {
    if (!asked_at_ || is_over()) return;
    for (const Being& each : beings_) {
      const bool is_first = &each == &beings_.front();
      if (!each.lives || (!is_first && each.born >= *asked_at_)) continue;
      if (is_first || is_noted_ || now_ > *asked_at_ + kTimeForOwnRest + kLate) RC_ASSERT((each.asked > 0));
    }
    // Once, and once more for each who has asked again.
    for (const Being& each : beings_) RC_ASSERT((each.asked <= std::max(1, asks_)));
    const bool is_late = std::ranges::any_of(beings_, [this](const Being& each) {
      return each.lives && each.born < killed_by_ && now_ > killed_by_ + kLate;
    });
    RC_ASSERT(!is_late);
    // A time limit holds, unless what was asked for ends the job as soon.
    RC_ASSERT((!time_ || is_time_over_ || now_ <= *time_ + kLate ||
               killed_by_ <= *time_ + rules_.grace + kTimeForOwnRest));
  }

  void check_end() const {
    RC_ASSERT((is_noted_ && has_ended()));
    RC_ASSERT(((state_.ended_by == EndedBy::itself) == !was_asked_));
    const bool has_given_way = gave_way_ && asks_ == 0 && !is_time_over_ && !has_left_;
    RC_ASSERT(((state_.ended_by == EndedBy::waiter) == has_given_way));
  }

  Rules rules_{};
  State state_{};
  Moment now_{};
  std::optional<Moment> time_{};  ///< in the ticket; the lease was granted at 0
  std::vector<Being> beings_{};
  std::vector<std::pair<Moment, Deed>> deeds_{};
  int asks_ = 0;
  std::optional<Moment> asked_at_{};  ///< by anybody, or by the time
  Moment killed_by_ = kNever;
  Moment computed_at_{};
  bool wanted_ = false;
  bool gave_way_ = false;
  bool is_time_over_ = false;
  bool watch_ended_ = false;
  bool is_noted_ = false;
  bool was_asked_ = false;  ///< before the command ended
  bool has_left_ = false;
  bool end_is_told_ = false;
  bool looks_again_ = false;
};

}  // namespace

TEST_CASE("no lease of the living is given back and no call is lost, whatever happens to a command") {
  holds_for_any("any history", [] { History().go(); });
}

}  // namespace berth::leased_run_random_test
