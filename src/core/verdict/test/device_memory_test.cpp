#include <doctest/doctest.h>

#include "berth/verdict/test/judged.h"
#include "berth/verdict/verdict.h"

namespace berth::device_memory_test {
namespace {

using namespace test;

TEST_CASE("free memory is one honest number") {
  struct Number {
    std::string why;
    Reading<std::uint64_t> gib;
    void (*arrange)(Ledger&, Facts&);
  };
  for (const Number& row : {
           Number{"all but the driver's reserve", 39, [](Ledger&, Facts&) {}},
           Number{"less what an outsider uses", 36,
                  [](Ledger&, Facts& f) { add_process(f.snapshot.devices[0], process(9, 3 * kGiB)); }},
           Number{"less what nobody is listed for", 35,
                  [](Ledger&, Facts& f) { f.snapshot.devices[0].memory.used_bytes = 4 * kGiB; }},
           Number{"nothing beside a whole lease", 0,
                  [](Ledger& l, Facts&) { l.tickets = {lease(1, kGpu0)}; }},
           Number{"less what is promised, used or not", 29,
                  [](Ledger& l, Facts&) { l.tickets = {shared_lease(1, kGpu0, 10 * kGiB)}; }},
           Number{"a promise and the use of it are one", 29,
                  [](Ledger& l, Facts& f) {
                    l.tickets = {shared_lease(1, kGpu0, 10 * kGiB)};
                    f.process_leases = {{9, TicketId{1}}};
                    add_process(f.snapshot.devices[0], process(9, 6 * kGiB));
                  }},
           Number{"a lease that uses more than promised counts by its use", 24,
                  [](Ledger& l, Facts& f) {
                    l.tickets = {shared_lease(1, kGpu0, 10 * kGiB)};
                    f.process_leases = {{9, TicketId{1}}};
                    add_process(f.snapshot.devices[0], process(9, 15 * kGiB));
                  }},
           Number{"leases and outsiders add up", 16,
                  [](Ledger& l, Facts& f) {
                    l.tickets = {shared_lease(1, kGpu0, 10 * kGiB), shared_lease(2, kGpu0, 5 * kGiB)};
                    f.process_leases = {{9, TicketId{1}}, {10, TicketId{2}}};
                    add_process(f.snapshot.devices[0], process(9, 2 * kGiB));
                    add_process(f.snapshot.devices[0], process(10, 6 * kGiB));
                    add_process(f.snapshot.devices[0], process(11, 7 * kGiB));
                  }},
           Number{"a promise that nobody could keep leaves nothing", 0,
                  [](Ledger& l, Facts&) {
                    l.tickets = {shared_lease(1, kGpu0, 10 * kGiB),
                                 shared_lease(2, kGpu0, ~std::uint64_t{0} - 5 * kGiB)};
                  }},
           Number{"a use that no card could have leaves nothing", 0,
                  [](Ledger&, Facts& f) {
                    add_process(f.snapshot.devices[0], process(9, ~std::uint64_t{0}));
                    add_process(f.snapshot.devices[0], process(10, 6 * kGiB));
                  }},
           Number{"never less than none", 0,
                  [](Ledger& l, Facts& f) {
                    l.tickets = {shared_lease(1, kGpu0, 30 * kGiB)};
                    f.snapshot.devices[0].memory.used_bytes = 20 * kGiB;
                  }},
           Number{"what the driver calls free says what is used, too", 31,
                  [](Ledger&, Facts& f) {
                    f.snapshot.devices[0].memory.used_bytes.reset();
                    f.snapshot.devices[0].memory.free_bytes = 31 * kGiB;
                  }},
           Number{"unknown without a total",
                  {},
                  [](Ledger&, Facts& f) { f.snapshot.devices[0].memory.total_bytes.reset(); }},
           Number{"unknown where nobody tells what is used",
                  {},
                  [](Ledger&, Facts& f) {
                    f.snapshot.devices[0].memory.used_bytes.reset();
                    f.snapshot.devices[0].memory.free_bytes.reset();
                  }},
           Number{"on unified memory what the machine has available", 60,
                  [](Ledger&, Facts& f) {
                    f.snapshot.devices[0].memory = {MemoryKind::unified, 128 * kGiB, {}, 60 * kGiB, {}};
                  }},
           Number{"and of that less only what is promised and not yet used", 56,
                  [](Ledger& l, Facts& f) {
                    f.snapshot.devices[0].memory = {MemoryKind::unified, 128 * kGiB, 0, 60 * kGiB, {}};
                    l.tickets = {shared_lease(1, kGpu0, 10 * kGiB)};
                    f.process_leases = {{9, TicketId{1}}};
                    add_process(f.snapshot.devices[0], process(9, 6 * kGiB));
                  }},
       }) {
    Ledger ledger;
    Facts facts = machine(1);
    facts.snapshot.devices[0].memory.reserved_bytes = kGiB;
    row.arrange(ledger, facts);
    const Reading<std::uint64_t> free = free_for_lease(facts.snapshot.devices[0], ledger, facts);
    CHECK_MESSAGE(free.has_value() == row.gib.has_value(), row.why);
    if (free && row.gib) CHECK_MESSAGE(*free == *row.gib * kGiB, row.why);
  }
}

TEST_CASE("a device with unified memory is free when no process is listed on it") {
  Facts facts = machine(1);
  facts.snapshot.devices[0].memory = {MemoryKind::unified, 128 * kGiB, 70 * kGiB, 58 * kGiB, {}};
  CHECK(judged({}, {}, facts).free());
  CHECK(judged(shared_request(50 * kGiB), {}, facts).free());
  CHECK(judged(shared_request(60 * kGiB), {}, facts).reason == "58 GiB free for a lease, 60 GiB needed");
  facts.snapshot.devices[0].processes->push_back(process(9, kGiB));
  CHECK(judged({}, {}, facts).failed == Clause::no_outsider);
}

}  // namespace
}  // namespace berth::device_memory_test
