#include "berth/queue/schedule.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "property.h"

namespace berth::schedule_test {
namespace {

constexpr Moment kNow = 100'000;
constexpr Moment kHour = 3600;
const QueueRules kRules{};

using Indices = std::vector<std::size_t>;

/// Free devices, all of them a candidate of everybody.
QueueState line_of(std::size_t devices) {
  QueueState queue;
  queue.now = kNow;
  queue.room_bytes.assign(devices, 100);
  queue.sets.emplace_back(devices);
  std::iota(queue.sets[0].begin(), queue.sets[0].end(), 0);
  return queue;
}

Wish wish(std::uint64_t id, unsigned count, std::optional<Moment> length = {}) {
  return {.id = {id}, .count = count, .length = length};
}

Wish part(std::uint64_t id, std::uint64_t bytes, std::optional<Moment> length = {}) {
  return {.id = {id}, .shared = true, .bytes = bytes, .length = length};
}

Hold held(std::size_t device, Moment until) {
  return {device, 0, until};
}

Assignment starts(Indices devices) {
  return StartsNow{std::move(devices)};
}

Assignment reserved(Moment from, Indices devices) {
  return ReservedFrom{from, std::move(devices)};
}

Assignment behind(std::uint64_t id) {
  return WaitsBehind{TicketId{id}};
}

TEST_CASE("whoever finds enough that is free starts, in the order of the line") {
  QueueState queue = line_of(3);
  queue.wishes = {wish(1, 2), wish(2, 1), wish(3, 1)};
  CHECK(schedule(queue, kRules) == std::vector{starts({0, 1}), starts({2}), reserved(kNow + kHour, {0})});
}

TEST_CASE("the first who finds too little has what is free the latest by the time that enough is") {
  QueueState queue = line_of(4);
  queue.holds = {held(0, kNow + 1 * kHour), held(1, kNow + 2 * kHour), held(2, kNow + 3 * kHour)};
  queue.wishes = {wish(1, 3)};
  CHECK(schedule(queue, kRules) == std::vector{reserved(kNow + 2 * kHour, {0, 1, 3})});
  queue.wishes = {wish(1, 2)};
  CHECK(schedule(queue, kRules) == std::vector{reserved(kNow + 1 * kHour, {0, 3})});
}

TEST_CASE("who comes later fills a hole that it leaves in time, and no other") {
  QueueState queue = line_of(2);
  queue.holds = {held(0, kNow + 2 * kHour)};
  queue.wishes = {wish(1, 2), wish(2, 1, 3 * kHour), wish(3, 1, 2 * kHour), wish(4, 1, kHour)};
  CHECK(schedule(queue, kRules) ==
        std::vector{reserved(kNow + 2 * kHour, {0, 1}), behind(1), starts({1}), behind(3)});
}

TEST_CASE("who does not say how long it takes fills a hole of the assumed length") {
  QueueState queue = line_of(2);
  queue.holds = {held(0, kNow + kHour)};
  queue.wishes = {wish(1, 2), wish(2, 1)};
  CHECK(schedule(queue, kRules)[1] == starts({1}));
  CHECK(schedule(queue, {.assumed_s = 2 * kHour})[1] == behind(1));
}

TEST_CASE("what no reservation wants is open to whoever takes long") {
  QueueState queue = line_of(3);
  queue.holds = {held(0, kNow + kHour), held(1, kNow + 2 * kHour)};
  queue.wishes = {wish(1, 2, kHour), wish(2, 1, 100 * kHour)};
  // Device 2 would do for the first as well as device 0 does, at the same time.
  CHECK(schedule(queue, kRules) == std::vector{reserved(kNow + kHour, {0, 2}), behind(1)});
  queue.wishes = {wish(1, 1, kHour), wish(2, 1, 100 * kHour)};
  queue.holds.push_back(held(2, kNow + kHour));
  queue.room_bytes.push_back(100);
  queue.sets.push_back({3});
  queue.wishes[1].candidates = 1;
  CHECK(schedule(queue, kRules) == std::vector{reserved(kNow + kHour, {0}), starts({3})});
}

TEST_CASE("those that share no device have each a reservation, and those between them none") {
  QueueState queue = line_of(2);
  queue.sets = {{0}, {1}, {0, 1}};
  queue.holds = {held(0, kNow + kHour), held(1, kNow + 2 * kHour)};
  queue.wishes = {wish(1, 1), wish(2, 1), wish(3, 1)};
  queue.wishes[1].candidates = 1;
  queue.wishes[2].candidates = 2;
  CHECK(schedule(queue, kRules) ==
        std::vector{reserved(kNow + kHour, {0}), reserved(kNow + 2 * kHour, {1}), behind(2)});
}

TEST_CASE("the first three that cannot start have a reservation each if run times count") {
  QueueState queue = line_of(1);
  queue.holds = {held(0, kNow + kHour)};
  for (std::uint64_t id = 1; id <= 5; ++id) queue.wishes.push_back(wish(id, 1, kHour));
  CHECK(schedule(queue, kRules) ==
        std::vector{reserved(kNow + kHour, {0}), behind(1), behind(2), behind(3), behind(4)});
  for (Wish& one : queue.wishes) one.expected = kHour;
  CHECK(schedule(queue, kRules) == std::vector{reserved(kNow + kHour, {0}), reserved(kNow + 2 * kHour, {0}),
                                               reserved(kNow + 3 * kHour, {0}), behind(3), behind(4)});
  // Who goes by the order of coming keeps one behind whoever is before it.
  queue.wishes[1].expected.reset();
  CHECK(schedule(queue, kRules) == std::vector{reserved(kNow + kHour, {0}), behind(1),
                                               reserved(kNow + 2 * kHour, {0}),
                                               reserved(kNow + 3 * kHour, {0}), behind(4)});
}

TEST_CASE("nobody starts on what the second or the third reservation needs") {
  QueueState queue = line_of(4);
  queue.sets = {{0, 1}, {1, 2}, {2, 3}, {3}};
  queue.holds = {held(0, kNow + kHour), held(1, kNow + 2 * kHour)};
  queue.wishes = {wish(1, 2, 4 * kHour), wish(2, 2, 4 * kHour), wish(3, 2, 7 * kHour),
                  wish(4, 1, 20 * kHour)};
  for (std::size_t at = 0; at < 4; ++at) queue.wishes[at].candidates = at;
  CHECK(schedule(queue, kRules)[2] == starts({2, 3}));
  for (Wish& one : queue.wishes) one.expected = kHour;
  CHECK(schedule(queue, kRules) ==
        std::vector{reserved(kNow + 2 * kHour, {0, 1}), reserved(kNow + 6 * kHour, {1, 2}),
                    reserved(kNow + 10 * kHour, {2, 3}), reserved(kNow + 17 * kHour, {3})});
  queue.wishes[3].length = 10 * kHour;
  CHECK(schedule(queue, kRules)[3] == starts({3}));
}

TEST_CASE("one that wants a device which is not free leaves the free ones to the others") {
  QueueState queue = line_of(2);
  queue.sets.push_back({0});
  queue.holds = {held(0, kNow + kHour)};
  queue.wishes = {wish(1, 1), wish(2, 1, 1000 * kHour)};
  queue.wishes[0].candidates = 1;
  CHECK(schedule(queue, kRules) == std::vector{reserved(kNow + kHour, {0}), starts({1})});
}

using Starts = std::vector<std::optional<Moment>>;
const QueueRules kInOrder{.backfill = false};

Starts expected(const QueueState& queue, const QueueRules& rules) {
  Starts starts;
  for (const auto& start : expected_starts(queue, rules))
    starts.push_back(start ? std::optional(start->from) : std::nullopt);
  return starts;
}

TEST_CASE("a start is expected where enough of what is held ends by then") {
  QueueState queue = line_of(2);
  queue.holds = {held(0, kNow + kHour), held(1, kNow + 2 * kHour)};
  queue.wishes = {wish(1, 1, kHour), wish(2, 2, kHour), wish(3, 1)};
  CHECK(expected(queue, kInOrder) == Starts{kNow + kHour, kNow + 2 * kHour, kNow + 3 * kHour});
}

TEST_CASE("who waits for somebody without a time is told no start") {
  QueueState queue = line_of(2);
  queue.holds = {held(0, kNow + kHour), held(1, kNever)};
  queue.wishes = {wish(1, 2), wish(2, 1, kHour)};
  CHECK(expected(queue, kInOrder) == Starts{std::nullopt, std::nullopt});
  queue.wishes = {wish(1, 1), wish(2, 1, kHour)};
  CHECK(expected(queue, kInOrder) == Starts{kNow + kHour, std::nullopt});
}

TEST_CASE("nobody is expected to start before an earlier rival, but where gaps are filled") {
  QueueState queue = line_of(2);
  queue.holds = {held(0, kNow + 2 * kHour)};
  queue.wishes = {wish(1, 2, kHour), wish(2, 1, kHour)};
  CHECK(expected(queue, kInOrder) == Starts{kNow + 2 * kHour, kNow + 3 * kHour});
  CHECK(expected(queue, kRules) == Starts{kNow + 2 * kHour, kNow});
  CHECK(expected_starts(queue, kRules)[1] == ExpectedStart{kNow, {1}});
}

TEST_CASE("those that share no device have starts of their own, and one that is skipped has none") {
  QueueState queue = line_of(2);
  queue.sets = {{0}, {1}};
  queue.holds = {held(0, kNever), held(1, kNow + kHour)};
  queue.wishes = {wish(1, 1), wish(2, 1), wish(3, 1)};
  queue.wishes[1].candidates = queue.wishes[2].candidates = 1;
  queue.wishes[1].skipped = true;
  CHECK(expected(queue, kInOrder) == Starts{std::nullopt, std::nullopt, kNow + kHour});
}

TEST_CASE("a part starts as soon as it fits beside the others") {
  QueueState queue = line_of(1);
  queue.holds = {{0, 0, kNow + kHour, false, 60}, {0, 0, kNow + 2 * kHour, false, 30}};
  queue.wishes = {part(1, 50, kHour), part(2, 40, kHour), part(3, 90)};
  CHECK(expected(queue, kInOrder) == Starts{kNow + kHour, kNow + 2 * kHour, kNow + 3 * kHour});
}

TEST_CASE("the starts of a long line are told of its first hundred") {
  QueueState queue = line_of(1);
  queue.holds = {held(0, kNow + 1)};
  for (std::uint64_t id = 1; id <= kForeseen + 1; ++id) queue.wishes.push_back(wish(id, 1, 1));
  const Starts starts = expected(queue, kInOrder);
  CHECK(starts[kForeseen - 1] == kNow + static_cast<Moment>(kForeseen));
  CHECK_FALSE(starts[kForeseen].has_value());
}

TEST_CASE("what nobody can say the end of reserves nothing") {
  QueueState queue = line_of(2);
  queue.holds = {held(0, kNever)};
  queue.wishes = {wish(1, 2), wish(2, 1, 1000 * kHour)};
  CHECK(schedule(queue, kRules) == std::vector<Assignment>{WaitsBehind{}, starts({1})});
}

TEST_CASE("one that is skipped keeps nothing from anybody") {
  QueueState queue = line_of(1);
  queue.wishes = {wish(1, 1), wish(2, 1)};
  queue.wishes[0].skipped = true;
  CHECK(schedule(queue, kRules) == std::vector<Assignment>{WaitsBehind{}, starts({0})});
}

TEST_CASE("parts of a device fit beside each other, and whole ones beside nothing") {
  QueueState queue = line_of(1);
  queue.holds = {{0, 0, kNow + kHour, false, 60}};
  queue.wishes = {part(1, 40, kHour), wish(2, 1), part(3, 1, kHour)};
  CHECK(schedule(queue, kRules) == std::vector{starts({0}), reserved(kNow + kHour, {0}), behind(2)});
  queue.wishes = {part(1, 41, kHour), part(2, 40, 2 * kHour), part(3, 40, kHour)};
  CHECK(schedule(queue, kRules) == std::vector{reserved(kNow + kHour, {0}), starts({0}), behind(2)});
}

TEST_CASE("promises beyond all bounds fit nowhere") {
  QueueState queue = line_of(1);
  queue.holds = {{0, 0, kNow + kHour, false, ~std::uint64_t{0} - 10}};
  queue.wishes = {part(1, 20)};
  CHECK(schedule(queue, kRules) == std::vector{reserved(kNow + kHour, {0})});
  queue.wishes = {part(1, ~std::uint64_t{0})};
  CHECK(schedule(queue, kRules) == std::vector<Assignment>{WaitsBehind{}});
}

TEST_CASE("without backfill nobody starts in front of a rival that came earlier") {
  QueueState queue = line_of(3);
  queue.sets.push_back({2});
  queue.holds = {held(0, kNow + kHour)};
  queue.wishes = {wish(1, 3), wish(2, 1, 1), wish(3, 1, 1)};
  queue.wishes[2].candidates = 1;
  CHECK(schedule(queue, {.backfill = false}) == std::vector<Assignment>{WaitsBehind{}, behind(1), behind(2)});
}

TEST_CASE("what ends is later than now, whatever was said") {
  CHECK(expected_end(kNow, kHour, kNow, kRules) == kNow + kHour);
  CHECK(expected_end(kNow - kHour, kHour, kNow, kRules) == kNow + 60);
  CHECK(expected_end(kNow, {}, kNow, kRules) == kNow + kHour);
  CHECK(expected_end(kNow - 2 * kHour, {}, kNow, kRules) == kNow + 6 * kHour);
  CHECK(expected_end(0, kNever, kNow, kRules) == kNever);
  CHECK(expected_end(-kNever, {}, kNow, kRules) > kNow);
  CHECK(expected_end(kNever, {}, kNow, kRules) == kNever);
}

// Any line.

QueueState any_queue(bool with_parts) {
  const auto devices = *rc::gen::inRange<std::size_t>(1, 6);
  QueueState queue = line_of(devices);
  const auto any_set = [&] {
    const auto mask = *rc::gen::inRange<std::size_t>(1, std::size_t{1} << devices);
    Indices set;
    for (std::size_t device = 0; device < devices; ++device) {
      if ((mask >> device) & 1) set.push_back(device);
    }
    return set;
  };
  queue.sets = {any_set(), any_set(), any_set()};
  for (std::size_t device = 0; device < devices; ++device) {
    const int kind = *rc::gen::inRange(0, with_parts ? 4 : 3);
    const Moment until = kNow + *rc::gen::inRange<Moment>(1, 20) * 600;
    if (kind == 1) queue.holds.push_back(held(device, until));
    if (kind == 2 && *rc::gen::inRange(0, 4) == 0) queue.holds.push_back(held(device, kNever));
    if (kind == 3) queue.holds.push_back({device, 0, until, false, *rc::gen::inRange<std::uint64_t>(1, 120)});
  }
  const auto count = *rc::gen::inRange<std::uint64_t>(0, 9);
  for (std::uint64_t id = 1; id <= count; ++id) {
    Wish one = wish(id, *rc::gen::inRange(1U, 4U));
    one.candidates = *rc::gen::inRange<std::size_t>(0, 3);
    if (*rc::gen::arbitrary<bool>()) one.length = *rc::gen::inRange<Moment>(1, 20) * 600;
    one.shared = with_parts && *rc::gen::arbitrary<bool>();
    if (one.shared) one.bytes = *rc::gen::inRange<std::uint64_t>(1, 110);
    one.skipped = *rc::gen::inRange(0, 6) == 0;
    if (*rc::gen::arbitrary<bool>()) one.expected = kHour;
    queue.wishes.push_back(one);
  }
  return queue;
}

/// Whether nobody has more than there is of any device at that moment. Counted anew, by the moment.
bool is_sound_at(Moment moment, const std::vector<Hold>& holds, const QueueState& queue) {
  for (std::size_t device = 0; device < queue.room_bytes.size(); ++device) {
    std::size_t whole = 0, parts = 0;
    std::uint64_t bytes = 0;
    for (const Hold& hold : holds) {
      if (hold.device != device || moment < hold.from || moment >= hold.until) continue;
      (hold.whole ? whole : parts) += 1;
      if (!hold.whole) bytes += hold.bytes;
    }
    if (whole > 1 || (whole == 1 && parts > 0)) return false;
    if (parts > 0 && bytes > queue.room_bytes[device]) return false;
  }
  return true;
}

bool is_sound(const std::vector<Hold>& holds, const QueueState& queue) {
  return std::ranges::all_of(
      holds, [&](const Hold& hold) { return is_sound_at(std::max(hold.from, queue.now), holds, queue); });
}

std::vector<Hold> holds_of(const Wish& wish, const Indices& devices, Moment from) {
  std::vector<Hold> holds;
  const Moment until = from + wish.length.value_or(kRules.assumed_s);
  for (const std::size_t device : devices) holds.push_back({device, from, until, !wish.shared, wish.bytes});
  return holds;
}

/// All that is held when everybody has had his turn.
std::vector<Hold> holds_after(const QueueState& queue, const std::vector<Assignment>& assignments) {
  std::vector<Hold> holds = queue.holds;
  for (std::size_t at = 0; at < assignments.size(); ++at) {
    std::vector<Hold> more;
    if (const auto* now = std::get_if<StartsNow>(&assignments[at]))
      more = holds_of(queue.wishes[at], now->devices, queue.now);
    if (const auto* later = std::get_if<ReservedFrom>(&assignments[at]))
      more = holds_of(queue.wishes[at], later->devices, later->from);
    holds.insert(holds.end(), more.begin(), more.end());
  }
  return holds;
}

std::vector<Hold> with(std::vector<Hold> holds, const std::vector<Hold>& more) {
  holds.insert(holds.end(), more.begin(), more.end());
  return holds;
}

/// Whether the wish could start beside all that is held.
bool could_start(const Wish& wish, const std::vector<Hold>& holds, const QueueState& queue) {
  const auto fits = [&](std::size_t device) {
    return is_sound(with(holds, holds_of(wish, {device}, queue.now)), queue);
  };
  return std::ranges::count_if(queue.sets[wish.candidates], fits) >= static_cast<long>(wish.count);
}

TEST_CASE("nothing is given twice, and each gets of its candidates what it asked for") {
  holds_for_any([] {
    QueueState queue = any_queue(true);
    std::erase_if(queue.holds, [](const Hold& hold) { return !hold.whole && hold.bytes > 100; });
    const std::vector<Assignment> assignments = schedule(queue, kRules);
    RC_ASSERT(assignments.size() == queue.wishes.size());
    RC_ASSERT(is_sound(holds_after(queue, assignments), queue));
    for (std::size_t at = 0; at < assignments.size(); ++at) {
      const auto* now = std::get_if<StartsNow>(&assignments[at]);
      if (now == nullptr) continue;
      RC_ASSERT(now->devices.size() == queue.wishes[at].count);
      RC_ASSERT(std::ranges::includes(queue.sets[queue.wishes[at].candidates], now->devices));
    }
  });
}

TEST_CASE("nobody who could start without delaying a reservation is left asleep") {
  holds_for_any([] {
    const QueueState queue = any_queue(false);
    const std::vector<Assignment> assignments = schedule(queue, kRules);
    const std::vector<Hold> holds = holds_after(queue, assignments);
    for (std::size_t at = 0; at < assignments.size(); ++at) {
      if (std::holds_alternative<StartsNow>(assignments[at]) || queue.wishes[at].skipped) continue;
      std::vector<Hold> of_others = holds;
      if (const auto* own = std::get_if<ReservedFrom>(&assignments[at])) {
        const auto mine = holds_of(queue.wishes[at], own->devices, own->from);
        std::erase_if(of_others,
                      [&](const Hold& hold) { return std::ranges::find(mine, hold) != mine.end(); });
      }
      RC_ASSERT(!could_start(queue.wishes[at], of_others, queue));
    }
  });
}

TEST_CASE("of those that go by run times, all before the third reservation start or have one") {
  holds_for_any([] {
    QueueState queue = any_queue(false);
    for (Wish& one : queue.wishes) {
      one.expected = kHour;
      one.candidates = 0;
    }
    const bool end_is_known =
        std::ranges::none_of(queue.holds, [](const Hold& hold) { return hold.until == kNever; });
    std::size_t kept = 0;
    const std::vector<Assignment> assignments = schedule(queue, kRules);
    for (std::size_t at = 0; at < assignments.size(); ++at) {
      const Wish& one = queue.wishes[at];
      const bool is_behind = std::holds_alternative<WaitsBehind>(assignments[at]);
      kept += std::holds_alternative<ReservedFrom>(assignments[at]) ? 1 : 0;
      const bool can = end_is_known && !one.skipped && one.count <= queue.sets[0].size();
      if (can && is_behind) RC_ASSERT(kept == 3U);
    }
    RC_ASSERT(kept <= 3U);
  });
}

TEST_CASE("of two who ask for the same, the one that came first starts") {
  holds_for_any([] {
    const QueueState queue = any_queue(true);
    const std::vector<Assignment> assignments = schedule(queue, kRules);
    for (std::size_t late = 0; late < assignments.size(); ++late) {
      for (std::size_t early = 0; early < late; ++early) {
        Wish as_late = queue.wishes[early];
        as_late.id = queue.wishes[late].id;
        if (!(as_late == queue.wishes[late]) || queue.wishes[early].skipped) continue;
        RC_ASSERT(!std::holds_alternative<StartsNow>(assignments[late]) ||
                  std::holds_alternative<StartsNow>(assignments[early]));
      }
    }
  });
}

TEST_CASE("with one size and no times it is first come, first served") {
  holds_for_any([] {
    QueueState queue = any_queue(false);
    for (Wish& one : queue.wishes) one = {.id = one.id, .count = 1};
    const std::vector<Assignment> assignments = schedule(queue, kRules);
    const auto is_start = [](const Assignment& assignment) {
      return std::holds_alternative<StartsNow>(assignment);
    };
    const auto free = std::ranges::count_if(queue.sets[0], [&](std::size_t device) {
      return std::ranges::none_of(queue.holds, [&](const Hold& hold) { return hold.device == device; });
    });
    const auto first = std::min(static_cast<std::size_t>(free), assignments.size());
    RC_ASSERT(
        std::ranges::all_of(assignments.begin(), assignments.begin() + static_cast<long>(first), is_start));
    RC_ASSERT(
        std::ranges::none_of(assignments.begin() + static_cast<long>(first), assignments.end(), is_start));
  });
}

// A line over the time: requests come, start when it is their turn, and end when they said or
// before.
struct Running {
  Wish wish;
  Indices devices;
  Moment since = 0, ends = 0;
};

struct History {
  QueueState queue;
  std::vector<Running> running;
  std::map<TicketId, Moment> promised;  ///< the latest reservation of each that waits

  void come(std::uint64_t id) {
    Wish one = wish(id, *rc::gen::inRange(1U, 4U), *rc::gen::inRange<Moment>(1, 20) * 600);
    one.candidates = *rc::gen::inRange<std::size_t>(0, queue.sets.size());
    if (one.count <= queue.sets[one.candidates].size()) queue.wishes.push_back(one);
  }

  void go_on() {
    queue.now += *rc::gen::inRange<Moment>(0, 2000);
    std::erase_if(running, [&](const Running& each) { return each.ends <= queue.now; });
  }

  void decide() {
    queue.holds.clear();
    for (const Running& each : running) {
      for (const std::size_t device : each.devices)
        queue.holds.push_back({device, 0, expected_end(each.since, each.wish.length, queue.now, kRules)});
    }
    const std::vector<Assignment> assignments = schedule(queue, kRules);
    std::vector<Wish> waiting;
    for (std::size_t at = 0; at < assignments.size(); ++at) {
      const Wish& one = queue.wishes[at];
      if (const auto* now = std::get_if<StartsNow>(&assignments[at])) {
        start(one, now->devices);
        continue;
      }
      waiting.push_back(one);
      if (const auto* later = std::get_if<ReservedFrom>(&assignments[at])) note(one.id, later->from);
    }
    queue.wishes = std::move(waiting);
  }

  void start(const Wish& one, const Indices& devices) {
    const Moment takes = *rc::gen::inRange<Moment>(1, *one.length + 1);
    running.push_back({one, devices, queue.now, queue.now + takes});
    note(one.id, queue.now);
    promised.erase(one.id);
  }

  void note(TicketId id, Moment from) {
    const auto before = promised.find(id);
    if (before != promised.end()) {
      const Moment latest = std::max(before->second, queue.now);
      RC_ASSERT(from <= latest);
    }
    promised[id] = from;
  }
};

TEST_CASE("no reservation is moved back by whoever comes later, as long as all keep their times") {
  holds_for_any([] {
    History history;
    history.queue = any_queue(false);
    // Where candidates differ, one that came earlier may find its turn later and then come before.
    history.queue.sets.resize(1);
    history.queue.wishes.clear();
    history.queue.holds.clear();
    for (std::uint64_t id = 1; id < 40; ++id) {
      history.come(id);
      history.go_on();
      history.decide();
    }
  });
}

}  // namespace
}  // namespace berth::schedule_test
