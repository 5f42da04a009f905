#include "berth/lease/attribution.h"

#include <doctest/doctest.h>

#include <map>

#include "berth/store/lease_store.h"

namespace berth::leasing::attribution_test {
namespace {

struct FakeProcess {
  std::uint32_t parent = 1;
  std::uint64_t start = 100;
  std::uint32_t uid = 1001;
  bool readable = true;
  bool has_file = false;
  std::string lease;
  std::string slurm_job{};
};

class FakeProcesses : public Processes {
 public:
  std::map<std::uint32_t, FakeProcess> all;

  std::optional<sys::ProcessStat> stat(std::uint32_t pid) override {
    if (!all.contains(pid)) return std::nullopt;
    return sys::ProcessStat{.process = {pid, all[pid].start},
                            .state = 'S',
                            .parent = static_cast<pid_t>(all[pid].parent),
                            .threads = 1};
  }
  std::optional<std::uint32_t> owner(std::uint32_t pid) override {
    return all.contains(pid) ? std::optional(all[pid].uid) : std::nullopt;
  }
  std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity&) override {
    if (!all.contains(pid) || !all[pid].readable) return std::nullopt;
    return all[pid].has_file;
  }
  std::optional<std::string> variable(std::uint32_t pid, const std::string& name) override {
    if (!all.contains(pid) || !all[pid].readable) return std::nullopt;
    return name == "SLURM_JOB_ID" ? all[pid].slurm_job : all[pid].lease;
  }
};

/// The memory store with a file behind each lease.
class StoreWithFiles : public store::MemoryStore {
 public:
  StoreWithFiles() : MemoryStore(std::make_shared<store::MemoryBooks>()) {}
  std::optional<sys::FileIdentity> file_of(const Ticket&) override { return sys::FileIdentity{1, 2}; }
};

constexpr TicketId kLease{7};

struct Scene {
  FakeProcesses processes;
  Ledger ledger;
  Snapshot snapshot;
  StoreWithFiles store;

  Scene() {
    Ticket lease;
    lease.id = kLease;
    lease.phase = TicketPhase::granted;
    lease.uid = 1001;
    lease.taker.pid = 50;
    lease.taker.start_ticks = 500;
    lease.devices = {"GPU-a"};
    ledger.tickets = {lease};
    processes.all[50].start = 500;
  }
  Attribution of(std::uint32_t pid, const std::string& uuid = "GPU-a") {
    Device device;
    device.uuid = uuid;
    Process process;
    process.pid = pid;
    device.processes = {process};
    snapshot.devices = {device};
    return attribute(snapshot, ledger, store, processes);
  }
};

TEST_CASE("a process belongs to a lease that") {
  Scene scene;
  FakeProcess& process = scene.processes.all[60];
  bool belongs = true;
  SUBCASE("its parent holds") {
    process.parent = 50;
  }
  SUBCASE("an ancestor holds") {
    process.parent = 59;
    scene.processes.all[59].parent = 50;
  }
  SUBCASE("it is kept for") {
    process.start = 600;
    scene.ledger.tickets[0].job.pid = 60;
    scene.ledger.tickets[0].job.start_ticks = 600;
  }
  SUBCASE("is kept for an ancestor") {
    process.parent = 59;
    scene.processes.all[59].start = 590;
    scene.ledger.tickets[0].job.pid = 59;
    scene.ledger.tickets[0].job.start_ticks = 590;
  }
  SUBCASE("not one that says it is kept for another user's process") {
    process.start = 600;
    process.uid = 1002;
    scene.ledger.tickets[0].job.pid = 60;
    scene.ledger.tickets[0].job.start_ticks = 600;
    belongs = false;
  }
  SUBCASE("not one that says another user's process holds it") {
    process.parent = 50;
    process.uid = 1002;
    scene.processes.all[50].uid = 1002;
    belongs = false;
  }
  SUBCASE("not one that says the ancestor of all is its holder") {
    process.parent = 1;
    process.uid = 1002;
    scene.processes.all[1].parent = 0;
    scene.processes.all[1].start = 1;
    scene.processes.all[1].uid = 0;
    scene.ledger.tickets[0].taker.pid = 1;
    scene.ledger.tickets[0].taker.start_ticks = 1;
    belongs = false;
  }
  SUBCASE("another user's, below its holder") {
    process.parent = 50;
    process.uid = 1002;
  }
  SUBCASE("it shares the ticket of, whoever runs it") {
    process.has_file = true;
    process.uid = 0;
  }
  SUBCASE("its environment names, if it is its owner's") {
    process.lease = to_text(kLease);
  }
  SUBCASE("its environment names as an outer one") {
    process.lease = to_text(kLease) + "/" + to_text({9});
  }
  SUBCASE("not one that another user's environment names") {
    process.lease = to_text(kLease);
    process.uid = 1002;
    belongs = false;
  }
  SUBCASE("not one whose holder's pid was used again") {
    process.parent = 50;
    scene.processes.all[50].start = 501;
    belongs = false;
  }
  SUBCASE("not one of the same user that nothing ties it to") {
    belongs = false;
  }
  const Attribution found = scene.of(60);
  CHECK(found.leases.contains(60) == belongs);
  CHECK(found.assumed.empty());
}

TEST_CASE("a process of a job of Slurm belongs to the lease for that job, if it is of the lease's user") {
  Scene scene;
  scene.ledger.tickets.front().slurm_job = 12;
  FakeProcess& process = scene.processes.all[60];
  process.slurm_job = "12";
  CHECK(scene.of(60).leases.count(60) == 1);
  SUBCASE("another job") {
    process.slurm_job = "13";
  }
  SUBCASE("no lease for a job of Slurm") {
    scene.ledger.tickets.front().slurm_job = 0;
  }
  SUBCASE("another user") {
    process.uid = 1002;
  }
  SUBCASE("a lease of Berth inside of something else") {
    process.lease = "0000000000000008";
  }
  CHECK(scene.of(60).leases.empty());
}

TEST_CASE("what a shell with two leases runs belongs to both") {
  Scene scene;
  Ticket second = scene.ledger.tickets[0];
  second.id = {8};
  second.taker.pid = 51;
  for (Ticket* kept : {&scene.ledger.tickets[0], &second}) {
    kept->job.pid = 59;
    kept->job.start_ticks = 590;
  }
  scene.ledger.tickets.push_back(second);
  scene.processes.all[59].start = 590;
  scene.processes.all[60].parent = 59;
  CHECK(scene.of(60).leases == std::multimap<std::uint32_t, TicketId>{{60, kLease}, {60, {8}}});
}

TEST_CASE("where /proc may not be read, the user decides on the lease's own devices, and it is marked") {
  Scene scene;
  scene.processes.all[60].readable = false;
  CHECK(scene.of(60).leases.find(60)->second == kLease);
  CHECK(scene.of(60).assumed.contains(60));
  CHECK_FALSE(scene.of(60, "GPU-b").leases.contains(60));
  scene.processes.all[60].uid = 1002;
  CHECK_FALSE(scene.of(60).leases.contains(60));
}

TEST_CASE("a pid that means nothing here belongs to nobody") {
  Scene scene;
  CHECK(scene.of(999).leases.empty());
}

TEST_CASE("the value of BERTH_LEASE names each lease on its path, whole") {
  CHECK(names_lease("0000000000000007", kLease));
  CHECK(names_lease("0000000000000001/0000000000000007", kLease));
  CHECK_FALSE(names_lease("", kLease));
  CHECK_FALSE(names_lease("000000000000000", kLease));
  CHECK_FALSE(names_lease("00000000000000071", kLease));
}

}  // namespace
}  // namespace berth::leasing::attribution_test
