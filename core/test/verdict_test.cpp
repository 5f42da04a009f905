#include "berth/core/verdict.h"

#include <doctest/doctest.h>

#include "machine.h"

namespace berth {
namespace {

using namespace test;

const std::string kGpu0 = uuid_of(0);

/// The verdict on the first device.
Verdict judged(const Request& request, const Ledger& ledger, const Facts& facts) {
  const Result<std::vector<Verdict>> verdicts = judge(request, ledger, facts);
  REQUIRE_MESSAGE(verdicts, verdicts.error().message);
  return verdicts->front();
}

TEST_CASE("an idle device is free for a whole request, and tells what a lease could use") {
  const Verdict verdict = judged({}, {}, machine(1));
  CHECK(verdict.free());
  CHECK(verdict.uuid == kGpu0);
  CHECK(verdict.reason == "");
  CHECK(verdict.free_bytes == 40 * kGiB - 512 * kMiB);
}

struct Row {
  const char* why;
  Clause clause;
  const char* reason;
  void (*arrange)(Request&, Ledger&, Facts&);
};

void first_clause_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    Request request;
    Ledger ledger;
    Facts facts = machine(1);
    row.arrange(request, ledger, facts);
    const Verdict verdict = judged(request, ledger, facts);
    REQUIRE_MESSAGE(verdict.failed, row.why);
    CHECK_MESSAGE(*verdict.failed == row.clause, row.why, ": ", verdict.reason);
    CHECK_MESSAGE(verdict.reason == row.reason, row.why);
  }
}

TEST_CASE("each clause fails with its numbers") {
  first_clause_rows({
      {"a lost device", Clause::healthy, "lost: it fell off the bus, until a reset or reboot (GPU is lost)",
       [](Request&, Ledger&, Facts& f) {
         f.snapshot.devices[0].state = DeviceState::lost;
         f.snapshot.devices[0].state_reason = "GPU is lost";
       }},
      {"a device that the driver does not answer for", Clause::healthy,
       "the driver does not respond about it (since 14:02)",
       [](Request&, Ledger&, Facts& f) {
         f.snapshot.devices[0].state = DeviceState::unresponsive;
         f.snapshot.devices[0].state_reason = "since 14:02";
       }},
      {"broken memory", Clause::healthy, "broken memory: row remapping failed",
       [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].health.row_remap_failed = true; }},
      {"a device that the site excludes", Clause::not_excluded, "excluded by the site: fan is broken",
       [](Request&, Ledger&, Facts& f) { f.policy.excluded = {{"GPU-0", "fan is broken"}}; }},
      {"a device outside the mask", Clause::in_mask, "not in CUDA_VISIBLE_DEVICES=1",
       [](Request&, Ledger&, Facts& f) { f.mask = Mask{"1", {uuid_of(1)}, {}}; }},
      {"a device that was not asked for", Clause::static_filters, "not one of the devices asked for",
       [](Request& r, Ledger&, Facts& f) {
         f = machine(2);
         r.devices = {"1"};
       }},
      {"a device that the request excludes", Clause::static_filters, "excluded by the request",
       [](Request& r, Ledger&, Facts&) { r.exclude = {kGpu0}; }},
      {"another model", Clause::static_filters, "name ~ H100 asked, it is NVIDIA A100-SXM4-40GB",
       [](Request& r, Ledger&, Facts&) { r.conditions = {condition("free>=1G and name~H100")}; }},
      {"a card that is too small for ever", Clause::static_filters, "free >= 80G asked, it is 39.5 GiB at most",
       [](Request& r, Ledger&, Facts&) { r.conditions = {condition("free>=80G")}; }},
      {"a promise that is larger than the card", Clause::static_filters, "39.5 GiB in all, 40 GiB needed",
       [](Request& r, Ledger&, Facts&) { r = shared_request(40 * kGiB); }},
      {"a whole lease", Clause::not_leased, "leased by alice",
       [](Request&, Ledger& l, Facts&) { l.tickets = {lease(7, kGpu0)}; }},
      {"a whole lease against a shared request", Clause::not_leased, "leased by alice",
       [](Request& r, Ledger& l, Facts&) {
         l.tickets = {lease(7, kGpu0)};
         r = shared_request(0);
       }},
      {"shared leases against a whole request", Clause::not_leased, "leased in part by alice",
       [](Request&, Ledger& l, Facts&) {
         l.tickets = {shared_lease(7, kGpu0, kGiB), shared_lease(8, kGpu0, kGiB)};
       }},
      {"shared leases that leave too little room", Clause::not_leased,
       "leased in part by alice; 9.5 GiB free for a lease, 10 GiB needed",
       [](Request& r, Ledger& l, Facts&) {
         l.tickets = {shared_lease(7, kGpu0, 30 * kGiB)};
         r = shared_request(10 * kGiB);
       }},
      {"a lock without a ticket", Clause::not_leased, "locked by a program that has no ticket",
       [](Request&, Ledger&, Facts& f) { f.foreign_locks = {kGpu0}; }},
      {"memory that is not back", Clause::not_draining,
       "draining: its last lease has ended, 12 GiB are not back yet",
       [](Request&, Ledger&, Facts& f) {
         f.draining = {kGpu0};
         f.snapshot.devices[0].memory.used_bytes = 12 * kGiB;
       }},
      {"an outsider", Clause::no_outsider, "1 process without a lease for it: pid 99 of bob with 3 GiB",
       [](Request&, Ledger&, Facts& f) { add_process(f.snapshot.devices[0], process(99, 3 * kGiB)); }},
      {"more outsiders than allowed", Clause::no_outsider,
       "2 processes without a lease for it: pid 99 of bob with 3 GiB; pid 98 of bob with 1 GiB (1 allowed)",
       [](Request& r, Ledger&, Facts& f) {
         add_process(f.snapshot.devices[0], process(99, 3 * kGiB));
         add_process(f.snapshot.devices[0], process(98, kGiB));
         r.allowed_processes = 1;
       }},
      {"a process whose lease is elsewhere", Clause::no_outsider,
       "1 process without a lease for it: pid 99 of bob with 3 GiB, whose lease is for other devices",
       [](Request&, Ledger& l, Facts& f) {
         f = machine(2);
         l.tickets = {lease(7, uuid_of(1))};
         add_process(f.snapshot.devices[0], process(99, 3 * kGiB));
         f.process_leases = {{99, TicketId{7}}};
       }},
      {"an unknown list of processes", Clause::no_outsider,
       "its processes are not available: nobody can say that it is idle",
       [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].processes.reset(); }},
      {"memory that nobody owns up to", Clause::no_hidden_holder,
       "hidden holder: 3 GiB in use beyond the listed processes, 512 MiB tolerated",
       [](Request&, Ledger&, Facts& f) {
         add_process(f.snapshot.devices[0], process(99, kGiB, ProcessKind::graphics));
         *f.snapshot.devices[0].memory.used_bytes += 3 * kGiB;
       }},
      {"a tolerated amount and one byte", Clause::no_hidden_holder,
       "hidden holder: 536870913 B in use beyond the listed processes, 536870912 B tolerated",
       [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].memory.used_bytes = 512 * kMiB + 1; }},
      {"a process that does not tell its memory", Clause::no_hidden_holder,
       "hidden holder: 3 GiB in use beyond the listed processes, 512 MiB tolerated (the memory of some listed "
       "processes is not available)",
       [](Request& r, Ledger&, Facts& f) {
         Process silent = process(99, 0);
         silent.used_bytes.reset();
         add_process(f.snapshot.devices[0], silent);
         f.snapshot.devices[0].memory.used_bytes = 3 * kGiB;
         r.allowed_processes = 1;
       }},
      {"unknown memory in use", Clause::no_hidden_holder,
       "its memory in use is not available: nobody can say that it is idle",
       [](Request&, Ledger&, Facts& f) {
         f.snapshot.devices[0].memory.used_bytes.reset();
         f.snapshot.devices[0].memory.free_bytes.reset();
       }},
      {"a prohibited device", Clause::compute_mode, "compute mode prohibited: nothing may compute on it",
       [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].compute_mode = ComputeMode::prohibited; }},
      {"an exclusive device with a process", Clause::compute_mode,
       "compute mode exclusive: only one process may compute on it, and pid 99 does",
       [](Request& r, Ledger&, Facts& f) {
         f.snapshot.devices[0].compute_mode = ComputeMode::exclusive_process;
         add_process(f.snapshot.devices[0], process(99, kGiB));
         r.allowed_processes = 1;
       }},
      {"an exclusive device with a lease that has not begun", Clause::compute_mode,
       "compute mode exclusive: only one process may compute on it, and alice has leased it",
       [](Request& r, Ledger& l, Facts& f) {
         f.snapshot.devices[0].compute_mode = ComputeMode::exclusive_process;
         l.tickets = {shared_lease(7, kGpu0, kGiB)};
         r = shared_request(kGiB);
       }},
      {"a threshold", Clause::thresholds, "util <= 5 asked, it is 40 %",
       [](Request& r, Ledger&, Facts& f) {
         f.snapshot.devices[0].utilization_percent = 40;
         r.conditions = {condition("util<=5")};
       }},
      {"a threshold on a reading that is not there", Clause::thresholds, "util <= 5 asked, it is not available",
       [](Request& r, Ledger&, Facts& f) {
         f.snapshot.devices[0].utilization_percent.reset();
         r.conditions = {condition("util<=5")};
       }},
      {"a shared request beside an allowed outsider", Clause::thresholds,
       "9.5 GiB free for a lease, 10 GiB needed",
       [](Request& r, Ledger&, Facts& f) {
         r = shared_request(10 * kGiB);
         r.allowed_processes = 1;
         add_process(f.snapshot.devices[0], process(99, 30 * kGiB));
       }},
  });
}

}  // namespace
}  // namespace berth
