#include "berth/store/earlier_rivals.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <string>
#include <vector>

#include "berth/queue/ticket_codec.h"
#include "berth/store/directory_scan.h"
#include "berth/store/test/directory_lab.h"
#include "berth/store/ticket_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/lock.h"

namespace berth::store::earlier_rivals_test {
namespace {

/// A live ticket of this process, written bit by bit.
class Written {
 public:
  Written(const Lab& lab, TicketId id)
      : file_(::open(lab.file("queue/" + to_text(id)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
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

struct Bench {
  Lab lab;
  std::unique_ptr<DirectoryStore> store = lab.open();
  std::unique_ptr<OwnTicket> first = wait_for(*store, "GPU-a");
  LeaseDirectory directory = LeaseDirectory::make({lab.path, DirectoryOrigin::environment}).value();
  EarlierRivals rivals{directory, false};
  Ticket mine = draft("GPU-a");

  Bench() { mine.id = TicketId{static_cast<std::uint64_t>(sys::since_boot().count()) + 1'000'000'000}; }
  void notes() {
    auto names = names_in_queue(directory).value();
    rivals.note(std::move(names.ids), names.newest);
  }
  void goes_through_the_gate() {
    REQUIRE(rivals.refresh(mine.id).has_value());
    while (!rivals.unread().empty()) REQUIRE(rivals.read_on(mine, {.all = true}).has_value());
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
  bench.rivals.read_ahead();
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

TEST_CASE("whoever has left since it was read ahead of the gate is no rival in it") {
  Bench bench;
  const auto second = wait_for(*bench.store, "GPU-a");
  bench.notes();
  bench.rivals.read_ahead();
  CHECK(known(bench.rivals).size() == 2);
  CHECK(bench.rivals.unread().empty());
  bench.first.reset();
  bench.goes_through_the_gate();
  CHECK(known(bench.rivals) == std::vector{second->ticket().id});
}

TEST_CASE("whoever is held back since it was read ahead of the gate is so in it") {
  Bench bench;
  bench.notes();
  bench.rivals.read_ahead();
  const auto told = bench.first->decide(
      [](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{.held_back = true}); });
  REQUIRE(told.has_value());
  bench.goes_through_the_gate();
  Ledger ledger;
  bench.rivals.add_to(ledger);
  REQUIRE(ledger.tickets.size() == 1);
  CHECK(ledger.tickets[0].held_back);
}

}  // namespace
}  // namespace berth::store::earlier_rivals_test
