#include <doctest/doctest.h>

#include "berth/verdict/test/judged.h"
#include "berth/verdict/verdict.h"

namespace berth::device_clauses_test {
namespace {

using namespace test;

struct Row {
  std::string why;
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

TEST_CASE("what a driver has recovered from, and what nobody understands, forbids nothing") {
  Facts facts = machine(1);
  Health& health = facts.snapshot.devices[0].health;
  for (const char* action : {"", "none", "recover_imex_domain", "42", "dance"}) {
    health.recovery_action = action;
    health.ecc_uncorrected = 7;
    health.row_remap_pending = true;
    health.retired_pages_pending = true;
    CHECK(judged({}, {}, facts).free());
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
      {"a device that its driver wants reset", Clause::healthy, "needs a reset: sudo nvidia-smi -r -i 0",
       [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].health.recovery_action = "reset"; }},
      {"a device whose driver wants a reboot", Clause::healthy, "needs a reboot: sudo reboot",
       [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].health.recovery_action = "reboot"; }},
      {"a device to be reset when its jobs have ended", Clause::healthy,
       "needs a reset when its jobs have ended: sudo nvidia-smi -r -i 0",
       [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].health.recovery_action = "drain_and_reset"; }},
      {"a device whose traffic with others is to end", Clause::healthy,
       "needs its peer-to-peer traffic to end: end the jobs that use it together with other GPUs; the driver "
       "then says what else it needs",
       [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].health.recovery_action = "drain"; }},
      {"a client of MPS without a lease", Clause::no_outsider,
       "1 process without a lease for it: pid 99 of bob with 1 GiB",
       [](Request&, Ledger&, Facts& f) {
         Process server = process(9, 28 * kMiB);
         server.command = "nvidia-cuda-mps-server";
         add_process(f.snapshot.devices[0], server);
         add_process(f.snapshot.devices[0], process(99, kGiB));
       }},
      {"more shares than the site allows", Clause::thresholds,
       "leased in part by alice; the site allows 1 share on a GPU",
       [](Request& r, Ledger& l, Facts& f) {
         r = shared_request(9 * kGiB);
         l.tickets = {shared_lease(1, kGpu0, 9 * kGiB)};
         f.policy.shares_per_gpu = 1;
       }},
      {"memory in use beyond all promises, where the site lets leases decide", Clause::no_hidden_holder,
       "hidden holder: 21 GiB in use, 20.5 GiB tolerated and promised; the driver does not tell its "
       "processes",
       [](Request& r, Ledger& l, Facts& f) {
         r = shared_request(9 * kGiB);
         l.tickets = {shared_lease(1, kGpu0, 20 * kGiB)};
         f.policy.trust_leases = {"0"};
         f.snapshot.devices[0].processes.reset();
         f.snapshot.devices[0].memory.used_bytes = 21 * kGiB;
       }},
      {"what is told, also where the site lets leases decide", Clause::no_outsider,
       "1 process without a lease for it: pid 99 of bob with 1 GiB",
       [](Request&, Ledger&, Facts& f) {
         f.policy.trust_leases = {"0"};
         add_process(f.snapshot.devices[0], process(99, kGiB));
       }},
      {"a device that the site excludes", Clause::not_excluded, "excluded by the site: fan is broken",
       [](Request&, Ledger&, Facts& f) { f.policy.excluded = {{"GPU-0", "fan is broken"}}; }},
      {"a device outside of the lease that the request is made in", Clause::in_lease, "not in this lease",
       [](Request&, Ledger&, Facts& f) { f.within = {uuid_of(1)}; }},
      {"a device outside the mask", Clause::in_mask, "not in CUDA_VISIBLE_DEVICES=1",
       [](Request&, Ledger&, Facts& f) { f.masks = {Mask{"1", {uuid_of(1)}, {}}}; }},
      {"a device that was not asked for", Clause::static_filters, "not one of the devices asked for",
       [](Request& r, Ledger&, Facts& f) {
         f = machine(2);
         r.devices = {"1"};
       }},
      {"a device that the request excludes", Clause::static_filters, "excluded by the request",
       [](Request& r, Ledger&, Facts&) { r.exclude = {kGpu0}; }},
      {"another model", Clause::static_filters, "name ~ H100 asked, it is NVIDIA A100-SXM4-40GB",
       [](Request& r, Ledger&, Facts&) { r.conditions = {condition("free>=1G and name~H100")}; }},
      {"a card that is too small for ever", Clause::static_filters,
       "free >= 80G asked, it is 39.5 GiB at most",
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
      {"a process without a lease that has ended, and that the driver still lists", Clause::not_draining,
       "draining: pid 99 of bob with 3 GiB ends",
       [](Request& r, Ledger&, Facts& f) {
         add_process(f.snapshot.devices[0], process(99, 3 * kGiB));
         f.snapshot.devices[0].processes->back().ending = true;
         r.allowed_processes = 1;
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
       "its processes are not available, so nobody can say that it is idle: `berth doctor` says more",
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
       "hidden holder: 3 GiB in use beyond the listed processes, 512 MiB tolerated (the memory of some "
       "listed "
       "processes is not available)",
       [](Request& r, Ledger&, Facts& f) {
         Process silent = process(99, 0);
         silent.used_bytes.reset();
         add_process(f.snapshot.devices[0], silent);
         f.snapshot.devices[0].memory.used_bytes = 3 * kGiB;
         r.allowed_processes = 1;
       }},
      {"unknown memory in use", Clause::no_hidden_holder,
       "its memory in use is not available, so nobody can say that it is idle: `berth doctor` says more",
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
      {"a threshold on a reading that is not there", Clause::thresholds,
       "util <= 5 asked, it is not available",
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

TEST_CASE("the order of the clauses decides which one is told") {
  Facts facts = machine(2);
  Ledger ledger;
  Request request;
  Device& device = facts.snapshot.devices[0];
  std::vector<Clause> told;
  const auto tell = [&] { told.push_back(*judged(request, ledger, facts).failed); };
  request.conditions = {condition("util<=5")};
  device.utilization_percent = 90;
  tell();
  facts.passed_over[kGpu0] = {};
  tell();
  device.compute_mode = ComputeMode::prohibited;
  tell();
  device.memory.used_bytes = 10 * kGiB;
  tell();
  device.processes->push_back(process(9, 0));
  tell();
  facts.draining = {kGpu0};
  tell();
  ledger.tickets = {lease(1, kGpu0)};
  tell();
  request.exclude = {"0"};
  tell();
  facts.masks = {Mask{"", {}, {}}};
  tell();
  facts.within.emplace();
  tell();
  facts.policy.excluded = {{"0", ""}};
  tell();
  device.state = DeviceState::failed;
  tell();
  REQUIRE(told.size() == 12);
  for (std::size_t i = 0; i < told.size(); ++i) CHECK(told[i] == static_cast<Clause>(11 - i));
}

TEST_CASE("what does not stand in the way") {
  struct Allowed {
    std::string why;
    void (*arrange)(Request&, Ledger&, Facts&);
  };
  for (const Allowed& row : {
           Allowed{"a desktop that draws, with its memory",
                   [](Request&, Ledger&, Facts& f) {
                     add_process(f.snapshot.devices[0], process(9, 3 * kGiB, ProcessKind::graphics));
                   }},
           Allowed{"memory that nobody is listed for, up to the tolerance",
                   [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].memory.used_bytes = 512 * kMiB; }},
           Allowed{"a program that the site does not count",
                   [](Request&, Ledger&, Facts& f) {
                     f.policy.ignored_programs = {"python"};
                     add_process(f.snapshot.devices[0], process(9, 3 * kGiB));
                   }},
           Allowed{"the server of MPS, where nobody else may compute",
                   [](Request& r, Ledger&, Facts& f) {
                     r.clean = true;
                     Process server = process(9, 28 * kMiB);
                     server.command = "nvidia-cuda-mps-server";
                     add_process(f.snapshot.devices[0], server);
                   }},
           Allowed{"such a program that has ended and is still listed",
                   [](Request&, Ledger&, Facts& f) {
                     f.policy.ignored_programs = {"python"};
                     add_process(f.snapshot.devices[0], process(9, 3 * kGiB));
                     f.snapshot.devices[0].processes->back().ending = true;
                   }},
           Allowed{"a user whom the site does not count",
                   [](Request&, Ledger&, Facts& f) {
                     f.policy.ignored_users = {"bob"};
                     add_process(f.snapshot.devices[0], process(9, 3 * kGiB));
                   }},
           Allowed{"the server and the control daemon of MPS",
                   [](Request&, Ledger&, Facts& f) {
                     Process server = process(9, 28 * kMiB);
                     server.command = "/usr/bin/nvidia-cuda-mps-server";
                     Process control = process(10, 0);
                     control.command = "nvidia-cuda-mps-control -d";
                     add_process(f.snapshot.devices[0], server);
                     add_process(f.snapshot.devices[0], control);
                   }},
           Allowed{"an exclusive device whose one process is the server of MPS, beside a share",
                   [](Request& r, Ledger& l, Facts& f) {
                     r = shared_request(9 * kGiB);
                     l.tickets = {shared_lease(1, kGpu0, 20 * kGiB)};
                     Process server = process(9, 28 * kMiB);
                     server.command = "nvidia-cuda-mps-server";
                     add_process(f.snapshot.devices[0], server);
                     f.snapshot.devices[0].compute_mode = ComputeMode::exclusive_process;
                   }},
           Allowed{"a program that the site does not count, on an exclusive device",
                   [](Request&, Ledger&, Facts& f) {
                     f.policy.ignored_programs = {"python"};
                     add_process(f.snapshot.devices[0], process(9, 3 * kGiB));
                     f.snapshot.devices[0].compute_mode = ComputeMode::exclusive_process;
                   }},
           Allowed{"one share less than the site allows",
                   [](Request& r, Ledger& l, Facts& f) {
                     r = shared_request(9 * kGiB);
                     l.tickets = {shared_lease(1, kGpu0, 9 * kGiB)};
                     f.policy.shares_per_gpu = 2;
                   }},
           Allowed{"processes that the driver does not tell, where the site lets leases decide",
                   [](Request&, Ledger&, Facts& f) {
                     f.policy.trust_leases = {"0"};
                     f.snapshot.devices[0].processes.reset();
                     f.snapshot.devices[0].memory.used_bytes = 512 * kMiB;
                   }},
           Allowed{"memory in use that a share was promised, where the site lets leases decide",
                   [](Request& r, Ledger& l, Facts& f) {
                     r = shared_request(9 * kGiB);
                     l.tickets = {shared_lease(1, kGpu0, 20 * kGiB)};
                     f.policy.trust_leases = {"GPU-0"};
                     f.snapshot.devices[0].processes.reset();
                     f.snapshot.devices[0].memory.used_bytes = 19 * kGiB;
                   }},
           Allowed{"memory that the driver does not tell, where the site lets leases decide",
                   [](Request&, Ledger&, Facts& f) {
                     f.policy.trust_leases = {"0"};
                     f.snapshot.devices[0].memory = {};
                   }},
           Allowed{"as many outsiders as the request allows",
                   [](Request& r, Ledger&, Facts& f) {
                     r.allowed_processes = 1;
                     add_process(f.snapshot.devices[0], process(9, 3 * kGiB));
                   }},
           Allowed{"the processes of a lease that shares",
                   [](Request& r, Ledger& l, Facts& f) {
                     r = shared_request(9 * kGiB);
                     l.tickets = {shared_lease(1, kGpu0, 30 * kGiB)};
                     f.process_leases = {{9, TicketId{1}}};
                     add_process(f.snapshot.devices[0], process(9, 29 * kGiB));
                   }},
           Allowed{"a waiting ticket",
                   [](Request&, Ledger& l, Facts&) {
                     l.tickets = {lease(1, kGpu0)};
                     l.tickets[0].phase = TicketPhase::waiting;
                   }},
           Allowed{"a lease on another device",
                   [](Request&, Ledger& l, Facts&) { l.tickets = {lease(1, uuid_of(1))}; }},
           Allowed{"a board that has neither compute modes nor row remapping",
                   [](Request&, Ledger&, Facts& f) {
                     f.snapshot.devices[0].compute_mode.reset();
                     f.snapshot.devices[0].health = {};
                   }},
           Allowed{"an exclusive device that nobody uses",
                   [](Request&, Ledger&, Facts& f) {
                     f.snapshot.devices[0].compute_mode = ComputeMode::exclusive_process;
                   }},
           Allowed{"a busy sample that nobody asked about",
                   [](Request&, Ledger&, Facts& f) { f.snapshot.devices[0].utilization_percent = 100; }},
           Allowed{"a mask that holds it",
                   [](Request&, Ledger&, Facts& f) { f.masks = {Mask{"0", {kGpu0}, {}}}; }},
           Allowed{"a site that excludes a card that is not here",
                   [](Request&, Ledger&, Facts& f) { f.policy.excluded = {{"GPU-ffff", "at repair"}}; }},
       }) {
    Request request;
    Ledger ledger;
    Facts facts = machine(1);
    row.arrange(request, ledger, facts);
    const Verdict verdict = judged(request, ledger, facts);
    CHECK_MESSAGE(verdict.free(), row.why, ": ", verdict.reason);
  }
}

TEST_CASE("each clause has its own name") {
  CHECK(to_text(Clause::healthy) == "healthy");
  CHECK(to_text(Clause::not_leased) == "not_leased");
  CHECK(to_text(Clause::no_hidden_holder) == "no_hidden_holder");
  CHECK(to_text(Clause::thresholds) == "thresholds");
}

}  // namespace
}  // namespace berth::device_clauses_test
