#include "berth/store/directory_ticket.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "berth/queue/ticket_codec.h"
#include "berth/store/test/directory_lab.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::store::earlier_rivals_test {
namespace {

/// A live ticket of this process, written bit by bit.
class Written {
 public:
  Written(const Lab& lab, TicketId id, const std::string& folder = "queue/")
      : file_(::open(lab.file(folder + to_text(id)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    REQUIRE(sys::try_lock_bytes(file_.get(), kAliveByte, 2).value_or(false));
  }
  void write(const std::string& text) {
    REQUIRE(::pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }

 private:
  sys::Descriptor file_;
};

std::vector<TicketId> known(const EarlierRivals& rivals) {
  Ledger ledger;
  rivals.add_to(ledger);
  std::vector<TicketId> ids;
  for (const Ticket& ticket : ledger.tickets) ids.push_back(ticket.id);
  std::ranges::sort(ids);
  return ids;
}

Moment now() {
  return sys::milliseconds_since_boot();
}

struct Bench {
  explicit Bench(bool with_later = false) : rivals(directory, with_later) {
    mine.id = TicketId{static_cast<std::uint64_t>(sys::since_boot().count()) + 1'000'000'000};
  }

  Lab lab;
  std::unique_ptr<DirectoryStore> store = lab.open();
  std::unique_ptr<OwnTicket> first = wait_for(*store, "GPU-a");
  LeaseDirectory directory = LeaseDirectory::make({lab.path, DirectoryOrigin::environment}).value();
  EarlierRivals rivals;
  Ticket mine = draft("GPU-a");

  void notes() {
    auto names = names_in_queue(directory).value();
    rivals.note(std::move(names.ids), names.taken.newest);
  }
  void enters_the_gate() { REQUIRE(rivals.refresh(mine, scan_leases(directory)->ledger).has_value()); }
  void goes_through_the_gate() {
    enters_the_gate();
    rivals.ask(mine, now());
    while (!rivals.unread().empty()) REQUIRE(rivals.read_on(mine, {.all = true}).has_value());
  }
};

/// In which the request goes by response ratio: it came first, and takes a day.
struct BenchByRatio : Bench {
  BenchByRatio() : Bench(true) {
    first.reset();
    mine.id = TicketId{mine.id.value - 10'000'000'000};
    mine.expected_s = 86'400;
  }
  /// Came so many seconds after that, and takes so long.
  Ticket later(std::uint64_t seconds, std::int64_t expected_s) const {
    Ticket ticket = draft("GPU-a");
    ticket.id = TicketId{mine.id.value + seconds * 1'000'000'000};
    ticket.joined_s = 1;
    ticket.expected_s = expected_s;
    return ticket;
  }
  Written waits(const Ticket& ticket) const {
    Written written(lab, ticket.id);
    written.write(encode_ticket(ticket));
    return written;
  }
};

TEST_CASE("whoever cannot be read ahead of the gate is read in it") {
  Bench bench;
  Ticket other = draft("GPU-a");
  other.id = TicketId{bench.first->ticket().id.value + 1};
  other.joined_s = 1;
  const std::string text = encode_ticket(other);
  Written ticket(bench.lab, other.id);
  ticket.write(text.substr(0, text.size() / 2));  // in the middle of being written
  bench.notes();
  bench.rivals.read_ahead(bench.mine);
  CHECK(known(bench.rivals) == std::vector{bench.first->ticket().id});
  ticket.write(text);
  bench.goes_through_the_gate();
  CHECK(known(bench.rivals) == std::vector{bench.first->ticket().id, other.id});
}

TEST_CASE("whoever was granted and waits again is a rival in its old place") {
  Bench bench;
  bench.notes();
  bench.goes_through_the_gate();
  const TicketId first = bench.first->ticket().id;
  CHECK(known(bench.rivals) == std::vector{first});
  REQUIRE(bench.first->decide([](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{"GPU-a"}, {{"GPU-a", true}}});
  }));
  bench.goes_through_the_gate();
  CHECK(known(bench.rivals).empty());
  REQUIRE(bench.first->wait_again({"GPU-a", "GPU-b"}, std::nullopt));
  bench.goes_through_the_gate();
  CHECK(known(bench.rivals) == std::vector{first});
  Ledger seen;
  bench.rivals.add_to(seen);
  CHECK(seen.tickets.front().candidates == std::vector<std::string>{"GPU-a", "GPU-b"});
  bench.first->release();
  bench.goes_through_the_gate();
  CHECK(known(bench.rivals).empty());
}

TEST_CASE("a lease that was given the id of who is back hides nobody") {
  Bench bench;
  bench.notes();
  bench.goes_through_the_gate();
  const TicketId first = bench.first->ticket().id;
  REQUIRE(bench.first->decide([](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{"GPU-a"}, {{"GPU-a", true}}});
  }));
  bench.goes_through_the_gate();
  REQUIRE(bench.first->wait_again({"GPU-a"}, std::nullopt));
  Written shadow(bench.lab, first, "leases/");
  Ticket lease = bench.first->ticket();
  lease.phase = TicketPhase::granted;
  lease.devices = {"GPU-z"};
  shadow.write(encode_ticket(lease));
  bench.goes_through_the_gate();
  CHECK(known(bench.rivals) == std::vector{first});
}

TEST_CASE("whoever has left since it was read ahead of the gate is no rival in it") {
  Bench bench;
  const auto second = wait_for(*bench.store, "GPU-a");
  bench.notes();
  bench.rivals.read_ahead(bench.mine);
  CHECK(known(bench.rivals).size() == 2);
  CHECK(bench.rivals.unread().empty());
  bench.first.reset();
  bench.goes_through_the_gate();
  CHECK(known(bench.rivals) == std::vector{second->ticket().id});
}

TEST_CASE("whoever is held back since it was read ahead of the gate is so in it") {
  Bench bench;
  bench.notes();
  bench.rivals.read_ahead(bench.mine);
  const auto told = bench.first->decide(
      [](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{.held_back = true}); });
  REQUIRE(told.has_value());
  bench.goes_through_the_gate();
  Ledger ledger;
  bench.rivals.add_to(ledger);
  REQUIRE(ledger.tickets.size() == 1);
  CHECK(ledger.tickets[0].held_back);
}

TEST_CASE("whoever was granted and is back since it was read is read again, as its text is another") {
  for (const bool ahead : {false, true}) {
    Bench bench;
    bench.notes();
    if (ahead)
      bench.rivals.read_ahead(bench.mine);
    else
      bench.goes_through_the_gate();
    // All of it happens while the waiter is not in the gate, and so sees nothing of it.
    REQUIRE(bench.first->decide([](const Ledger&, TicketId) -> Result<Decision> {
      return Decision(Take{{"GPU-a"}, {{"GPU-a", true}}});
    }));
    REQUIRE(bench.first->wait_again({"GPU-b"}, std::nullopt));
    bench.goes_through_the_gate();
    Ledger seen;
    bench.rivals.add_to(seen);
    REQUIRE(seen.tickets.size() == 1);
    CHECK(seen.tickets.front().candidates == std::vector<std::string>{"GPU-b"});
    // To a program of before, which reads the mark alone, it is a ticket that is not held back.
    CHECK_FALSE(seen.tickets.front().held_back);
    CHECK(wait_of(bench.directory.queue.get(), bench.first->ticket().id).let_go % 2 == 0);
    const auto held_back = bench.first->decide(
        [](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{.held_back = true}); });
    REQUIRE(held_back.has_value());
    CHECK(wait_of(bench.directory.queue.get(), bench.first->ticket().id).held_back);
  }
}

TEST_CASE("what is seen without the gate counts as far as the gate shows it, and hides nobody") {
  BenchByRatio bench;
  bench.notes();
  const Ticket second = bench.later(5, 60), third = bench.later(6, 60), gone = bench.later(7, 60);
  const Written third_waits = bench.waits(third);
  {
    const Written gone_waits = bench.waits(gone);
    bench.rivals.read_ahead(bench.mine);
  }
  CHECK(known(bench.rivals).empty());
  std::filesystem::remove(bench.lab.file("queue/" + to_text(gone.id)));
  // A listing without the gate may miss a name and have a later one.
  const Written second_waits = bench.waits(second);
  bench.goes_through_the_gate();
  CHECK(known(bench.rivals) == std::vector{second.id, third.id});
}

TEST_CASE("by response ratio those are asked whose turn is first, and the others once it is") {
  BenchByRatio bench;
  bench.notes();
  const Ticket quick = bench.later(5, 60), long_one = bench.later(6, 86'400);
  {
    const Written quick_waits = bench.waits(quick), long_waits = bench.waits(long_one);
    bench.rivals.read_ahead(bench.mine);
  }
  // Both are dead, and their names are there.
  bench.enters_the_gate();
  CHECK(known(bench.rivals) == std::vector{quick.id, long_one.id});
  const Moment joined_at = static_cast<Moment>(bench.mine.id.value / 1'000'000);
  CHECK_FALSE(bench.rivals.ask(bench.mine, joined_at + 5'000));
  CHECK(known(bench.rivals) == std::vector{quick.id, long_one.id});
  CHECK(bench.rivals.ask(bench.mine, joined_at + 6'000));
  CHECK(known(bench.rivals) == std::vector{long_one.id});
  CHECK_FALSE(bench.rivals.ask(bench.mine, joined_at + 7'000));
  bench.enters_the_gate();
  CHECK(known(bench.rivals) == std::vector{long_one.id});
}

TEST_CASE("whoever joined later is no older, whatever its ticket says") {
  BenchByRatio bench;
  bench.mine.joined_boot_ms = 1000;
  bench.notes();
  Ticket honest = bench.later(5, 60), liar = bench.later(6, 60);
  honest.joined_boot_ms = 1005;
  liar.joined_boot_ms = 0;
  const Written honest_waits = bench.waits(honest), liar_waits = bench.waits(liar);
  SUBCASE("read in the gate") {
    bench.goes_through_the_gate();
  }
  SUBCASE("read ahead of it") {
    bench.rivals.read_ahead(bench.mine);
    bench.enters_the_gate();
  }
  Ledger ledger;
  bench.rivals.add_to(ledger);
  REQUIRE(find_ticket(ledger, liar.id) != nullptr);
  CHECK(find_ticket(ledger, liar.id)->joined_boot_ms == 1000);
  CHECK(find_ticket(ledger, honest.id)->joined_boot_ms == 1005);
}

TEST_CASE("whoever comes to matter while a decision is made is asked, and the decision is made anew") {
  Lab lab;
  const auto store = lab.open();
  Ticket slow = draft("GPU-a");
  slow.expected_s = 86'400;
  const auto joined =
      store->join(slow, [](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{}); });
  REQUIRE(joined.has_value());
  // Its age begins in a second.
  Ticket quick = draft("GPU-a");
  quick.id = TicketId{static_cast<std::uint64_t>(sys::since_boot().count()) + 1'000'000'000};
  quick.joined_s = 1;
  quick.expected_s = 60;
  {
    Written written(lab, quick.id);
    written.write(encode_ticket(quick));
    joined->own->read_ahead();
  }
  std::size_t others = 0;
  const auto decided = joined->own->decide([&](const Ledger& ledger, TicketId) -> Result<Decision> {
    others = ledger.tickets.size() - 1;
    while (static_cast<std::uint64_t>(sys::since_boot().count()) < quick.id.value + 50'000'000)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return Decision(Stay{});
  });
  REQUIRE(decided.has_value());
  CHECK(others == 0);
}

}  // namespace
}  // namespace berth::store::earlier_rivals_test
