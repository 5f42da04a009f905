#include "berth/lease/session.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "berth/lease/look.h"
#include "berth/lease/test/scene.h"

namespace berth::leasing::acquire_test {
namespace {

TEST_CASE("a free device is leased, and the ticket says for what") {
  Scene scene;
  const HeldLease lease = scene.held();
  CHECK(lease.ticket().devices == std::vector<std::string>{"GPU-a"});
  CHECK(lease.ticket().command == "train.py");
  CHECK(lease.ticket().candidates == std::vector<std::string>{"GPU-a", "GPU-b"});
  CHECK(lease.ticket().taker.pid == static_cast<std::uint32_t>(::getpid()));
  REQUIRE(lease.devices().size() == 1);
  CHECK(lease.devices()[0]->index == 0);
  CHECK(scene.source.reads == 1);
}

TEST_CASE("the second gets the other device, the third is refused with a verdict for each") {
  Scene scene;
  const HeldLease first = scene.held();
  const HeldLease second = scene.held();
  CHECK(second.ticket().devices == std::vector<std::string>{"GPU-b"});
  const RequestRefused refusal = scene.refused();
  REQUIRE(refusal.standing.verdicts.size() == 2);
  CHECK(refusal.standing.verdicts[0].failed == Clause::not_leased);
  CHECK(refusal.standing.verdicts[1].failed == Clause::not_leased);
  CHECK(scene.books->tickets.size() == 2);
}

TEST_CASE("more devices than there are is impossible, and joins no queue") {
  Scene scene;
  scene.request.count = 3;
  CHECK(scene.refused().standing.verdicts.size() == 2);
  CHECK(scene.books->last_id == 0);
}

TEST_CASE("an earlier waiting rival comes first") {
  Scene scene(1);
  Ticket waiting;
  waiting.candidates = {"GPU-a"};
  waiting.command = "the earlier one";
  const auto earlier =
      scene.store.join(waiting, [](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{}); });
  const RequestRefused refusal = scene.refused();
  REQUIRE(refusal.standing.behind.has_value());
  CHECK(refusal.standing.behind->command == "the earlier one");
}

// The listing of locks does not show a lock, as in a pid namespace: only the try does.
class Blind : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  store::LocksSeen see_locks() override { return {}; }
};

TEST_CASE("a device that somebody without a ticket has locked is tried again, then named") {
  Scene scene(1);
  Blind store{scene.books};
  scene.books->foreign_locks["GPU-a"] = true;
  const auto acquire = [&] {
    return leasing::acquire(scene.source, store, scene.request, scene.options, {});
  };
  SUBCASE("it stays") {
    auto acquired = acquire();
    REQUIRE(std::holds_alternative<RequestRefused>(*acquired));
    const RequestRefused& refusal = std::get<RequestRefused>(*acquired);
    CHECK(refusal.standing.verdicts[0].failed == Clause::not_leased);
    CHECK(scene.books->tickets.empty());
  }
  SUBCASE("it goes") {
    scene.source.on_read = [&] {
      if (scene.source.reads == 2) scene.books->foreign_locks.clear();
    };
    auto acquired = acquire();
    CHECK(std::holds_alternative<HeldLease>(*acquired));
  }
}

TEST_CASE("a lock that nobody can see costs its device, and no other") {
  Scene scene(2);
  Blind store{scene.books};
  scene.books->foreign_locks["GPU-a"] = true;
  auto acquired = leasing::acquire(scene.source, store, scene.request, scene.options, {});
  REQUIRE(std::holds_alternative<HeldLease>(*acquired));
  CHECK(std::get<HeldLease>(*acquired).ticket().devices == std::vector<std::string>{"GPU-b"});
}

TEST_CASE("inside a lease only its devices exist") {
  Scene scene(4);
  scene.options.within = std::vector<std::string>{"GPU-c", "GPU-d"};
  CHECK(scene.held().ticket().devices == std::vector<std::string>{"GPU-c"});
  scene.options.masks = {{"CUDA_VISIBLE_DEVICES", "3,0"}};
  CHECK(scene.held().ticket().devices == std::vector<std::string>{"GPU-d"});
  scene.request.count = 2;
  CHECK(scene.refused().standing.verdicts[0].failed == Clause::in_lease);
}

TEST_CASE("a MIG instance is locked together with a part of its GPU") {
  Scene scene(1);
  Device instance = gpu(0);
  instance.uuid = "MIG-a";
  instance.mig = MigPlacement{"GPU-a", 0, {}, {}};
  scene.source.machine.devices[0].mig_enabled = true;
  scene.source.machine.devices.push_back(instance);
  const HeldLease lease = scene.held();
  CHECK(lease.ticket().devices == std::vector<std::string>{"MIG-a"});
  CHECK(scene.books->locks["GPU-a"].size() == 1);
  CHECK(scene.books->locks["MIG-a"].size() == 1);
}

TEST_CASE("a device whose lease has ended is draining while memory is in use that nobody living explains") {
  Scene scene(1);
  Ticket ended;
  ended.id = {3};
  ended.phase = TicketPhase::granted;
  ended.devices = {"GPU-a"};
  scene.books->ended[ended.id] = ended;
  Memory& memory = scene.source.machine.devices[0].memory;
  SUBCASE("the driver tells what is in use") {
    memory.used_bytes = 2 * kGiB;
  }
  SUBCASE("the driver tells only what is free") {
    memory.used_bytes.reset();
    memory.free_bytes = 78 * kGiB;
  }
  const RequestRefused refusal = scene.refused();
  CHECK(refusal.standing.verdicts[0].failed == Clause::not_draining);
  CHECK(scene.books->ended.size() == 1);
  memory.used_bytes = 0;
  CHECK(scene.held().ticket().devices.size() == 1);
  CHECK(scene.books->ended.empty());
}

TEST_CASE(
    "what an adopted process has is free for its lease, also where the driver tells only what is free") {
  Scene scene(1);
  Device& device = scene.source.machine.devices[0];
  device.memory.used_bytes.reset();
  device.memory.free_bytes = 78 * kGiB;
  Process process;
  process.pid = 4711;
  process.used_bytes = 2 * kGiB;
  device.processes = {process};
  scene.options.adopted = {4711};
  const auto world = look(scene.source, scene.store, scene.request, scene.options);
  REQUIRE(world.has_value());
  CHECK(world->facts.snapshot.devices[0].memory.free_bytes == 80 * kGiB);
}

TEST_CASE("an earlier waiter that goes on while the driver is asked is not overtaken") {
  Scene scene(1);
  Ticket other;
  other.taker.pid = 4711;
  other.candidates = {"GPU-a"};
  const auto stay = [](const Ledger&, TicketId) -> Result<Decision> { return {Stay{}}; };
  const auto rival = scene.store.join(other, stay);
  REQUIRE(rival.has_value());
  struct Stopped : Processes {
    char state = 'S';
    std::optional<sys::ProcessStat> stat(std::uint32_t) override {
      return sys::ProcessStat{.process = {4711, 0}, .state = state};
    }
    std::optional<std::uint32_t> owner(std::uint32_t) override { return {}; }
    std::optional<bool> can_write(std::uint32_t, const sys::FileIdentity&) override { return {}; }
    std::optional<std::string> variable(std::uint32_t, const std::string&) override { return {}; }
  } processes;
  scene.options.processes = &processes;
  scene.source.on_read = [&] { processes.state = 'S'; };
  bool told = false;
  Patience patience;
  patience.wait = true;
  patience.limit = std::chrono::seconds(1);
  const OnWait on_wait{[&](const Standing&, const Snapshot&) {
    if (!std::exchange(told, true)) processes.state = 'T';
  }};
  const SourceAccess access{[&]() -> Result<source::Source*> { return &scene.source; }, [] {}};
  const auto acquired =
      acquire_by_queue(access, scene.store, scene.request, scene.options, {}, patience, on_wait);
  REQUIRE(acquired.has_value());
  CHECK(scene.source.reads > 1);
  REQUIRE(std::holds_alternative<RequestRefused>(*acquired));
  CHECK(std::get<RequestRefused>(*acquired).standing.behind->id == rival->own->ticket().id);
}

TEST_CASE("while only an admin keeps a request waiting, the driver is not asked, and has no probe") {
  Scene scene(1);
  std::string path = "/tmp/berth-excluded-XXXXXX";
  REQUIRE(::mkdtemp(path.data()) != nullptr);
  scene.options.site_files.excluded = path + "/site.excluded.toml";
  REQUIRE(site::exclude(scene.options.site_files.excluded, {"GPU-a"}, "its fan"));
  scene.options.policy.excluded = {{"GPU-a", "its fan"}};
  Patience patience{.wait = true, .limit = std::nullopt, .was_accepted = true};
  patience.tick = std::chrono::milliseconds(1);
  int open = 0;
  const SourceAccess access{[&]() -> Result<source::Source*> {
                              ++open;
                              return &scene.source;
                            },
                            [&] { open = 0; }};
  int told = 0;
  OnWait on_wait;
  on_wait.call = [&](const Standing&, const Snapshot&) {
    if (++told == 10) {
      CHECK(open == 0);
      CHECK(site::end_exclusion(scene.options.site_files.excluded, {"GPU-a"}).value_or(false));
    }
  };
  const auto acquired =
      acquire_by_queue(access, scene.store, scene.request, scene.options, {}, patience, on_wait);
  ::rmdir(path.c_str());
  REQUIRE(acquired.has_value());
  CHECK(std::holds_alternative<HeldLease>(*acquired));
  CHECK(told == 10);
  // The first look, the one that finds what the file says, and the one after the change.
  CHECK(scene.source.reads == 3);
}

TEST_CASE("what the driver says is what comes back when there is none") {
  class NoDriver : public source::Source {
    Result<Snapshot> read(ReadingSet) override { return fail(ErrorCode::no_driver, "no driver"); }
  };
  Scene scene;
  NoDriver source;
  const auto acquired = leasing::acquire(source, scene.store, scene.request, scene.options, {});
  REQUIRE_FALSE(acquired.has_value());
  CHECK(acquired.error().code == ErrorCode::no_driver);
}

}  // namespace
}  // namespace berth::leasing::acquire_test
