// What the driver has said is older than the decision: leases that end in between, at each moment.

#include <doctest/doctest.h>

#include <filesystem>

#include "berth/lease/session.h"
#include "berth/lease/test/scene.h"
#include "berth/store/directory_store.h"
#include "berth/store/test/forked.h"
#include "berth/store/test/scratch_directory.h"

namespace berth::leasing::old_facts_test {
namespace {

bool is_granted(Scene& scene, store::LeaseStore& store) {
  auto acquired = leasing::acquire(scene.source, store, scene.request, scene.options, {});
  REQUIRE(acquired.has_value());
  return std::holds_alternative<HeldLease>(*acquired);
}

Result<store::JoinedTicket> take(store::LeaseStore& store, const std::string& uuid) {
  return store.join({}, [&](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{uuid}, {{uuid, true}}});
  });
}

/// A job has used memory since the driver answered, and the driver has not got it back yet.
void leave_memory(Scene& scene) {
  scene.source.machine.devices[0].memory.used_bytes = 30 * kGiB;
}

// A lease ends after the driver and the books were read, and before the decision.
class Late : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  std::function<void()> after_look;
  using MemoryStore::look;
  Result<store::Books> look(store::Extent extent, const std::optional<store::LocksSeen>& locks) override {
    auto books = MemoryStore::look(extent, locks);
    after_look();
    return books;
  }
};

TEST_CASE("facts that are older than a lease's end are read again before anybody is refused") {
  Scene scene(1);
  auto other = std::make_unique<HeldLease>(scene.held());
  Process worker;
  worker.pid = 999'999'999;
  worker.used_bytes = kGiB;
  scene.source.machine.devices[0].processes = {worker};
  scene.source.machine.devices[0].memory.used_bytes = kGiB;
  Late store{scene.books};
  store.after_look = [&] {
    if (!other || scene.source.reads == 1) return;  // not the leases that are noted first
    other.reset();
    scene.source.machine.devices[0] = gpu(0);
  };
  auto acquired = leasing::acquire(scene.source, store, scene.request, scene.options, {});
  REQUIRE(acquired.has_value());
  CHECK(std::holds_alternative<HeldLease>(*acquired));
}

TEST_CASE("no device is granted by facts that are older than the end of its lease") {
  Scene scene(1);
  auto other = std::make_unique<HeldLease>(scene.held());
  Late store{scene.books};
  store.after_look = [&] {
    if (scene.source.reads == 1) return;
    other.reset();
    leave_memory(scene);
  };
  auto acquired = leasing::acquire(scene.source, store, scene.request, scene.options, {});
  REQUIRE(acquired.has_value());
  CHECK_FALSE(std::holds_alternative<HeldLease>(*acquired));
}

TEST_CASE("a lease that ends while the driver answers leaves its device to a newer answer") {
  Scene scene(1);
  auto other = std::make_unique<HeldLease>(scene.held());
  scene.source.on_answer = [&] {
    other.reset();
    leave_memory(scene);
  };
  CHECK_FALSE(is_granted(scene, scene.store));
}

TEST_CASE("a lease that came and ended while the driver answered leaves its device to a newer answer") {
  Scene scene(1);
  scene.source.on_answer = [&] {
    if (scene.source.reads == 1) REQUIRE(take(scene.store, "GPU-a").has_value());
    leave_memory(scene);
  };
  CHECK_FALSE(is_granted(scene, scene.store));
}

/// With each answer of the driver a lease of another device comes and ends. `meanwhile`: what else
/// happens.
void churn(Scene& scene, std::function<void()> meanwhile = [] {}) {
  scene.source.on_answer = [&scene, meanwhile = std::move(meanwhile)] {
    REQUIRE(take(scene.store, "GPU-b").has_value());
    meanwhile();
  };
}

TEST_CASE("where leases come and go with each answer, a device is taken, and looked at then") {
  Scene scene(1);
  churn(scene);
  CHECK(is_granted(scene, scene.store));
  CHECK(scene.source.reads == 6);
}

TEST_CASE("what was taken so goes back if it does not fit") {
  Scene scene(1);
  churn(scene, [&] {
    if (scene.source.reads == 5) leave_memory(scene);
  });
  CHECK_FALSE(is_granted(scene, scene.store));
  scene.source.machine.devices[0] = gpu(0);
  scene.source.on_answer = [] {};
  CHECK(is_granted(scene, scene.store));
}

TEST_CASE("a driver that fails while it is asked about what was taken so costs no place") {
  Scene scene(1);
  churn(scene);
  Patience patience;
  patience.wait = true;
  // Not asked in this process once its answers begin to fail: the sixth time, and no more.
  int opened = 0;
  const SourceAccess access{[&]() -> Result<source::Source*> {
                              if (++opened == 6) return fail(ErrorCode::no_driver, "it fails");
                              return &scene.source;
                            },
                            [] {}};
  const auto acquired = acquire_by_queue(access, scene.store, scene.request, scene.options, {}, patience, {});
  REQUIRE(acquired.has_value());
  CHECK(std::holds_alternative<HeldLease>(*acquired));
}

TEST_CASE("once in the queue no lease of another device is a reason to ask the driver again") {
  Scene scene(1);
  scene.options.policy.queue.backfill = false;
  const auto stay = [](const Ledger&, TicketId) -> Result<Decision> { return {Stay{}}; };
  Ticket earlier;
  earlier.candidates = {"GPU-a"};
  auto rival = scene.store.join(earlier, stay);
  scene.source.on_answer = [&] { REQUIRE(take(scene.store, "GPU-b").has_value()); };
  Patience patience;
  patience.wait = true;
  const OnWait on_wait{[&](const Standing&, const Snapshot&) { rival->own.reset(); }};
  const SourceAccess access{[&]() -> Result<source::Source*> { return &scene.source; }, [] {}};
  const auto acquired =
      acquire_by_queue(access, scene.store, scene.request, scene.options, {}, patience, on_wait);
  REQUIRE(acquired.has_value());
  CHECK(std::holds_alternative<HeldLease>(*acquired));
  CHECK(scene.source.reads == 2);
}

TEST_CASE(
    "also in the queue a lease that ends while the driver answers leaves its device to a newer answer") {
  Scene scene(1);
  auto other = std::make_unique<HeldLease>(scene.held());
  scene.source.reads = 0;
  scene.source.on_answer = [&] {
    if (scene.source.reads != 2) return;
    other.reset();
    leave_memory(scene);
  };
  Patience patience;
  patience.wait = true;
  patience.limit = std::chrono::seconds(2);
  const SourceAccess access{[&]() -> Result<source::Source*> { return &scene.source; }, [] {}};
  const auto acquired = acquire_by_queue(access, scene.store, scene.request, scene.options, {}, patience, {});
  REQUIRE(acquired.has_value());
  CHECK(scene.source.reads > 2);
  CHECK(std::holds_alternative<RequestRefused>(*acquired));
}

/// A lease directory in which nothing has happened for long.
class QuietDirectory {
 public:
  QuietDirectory() {
    REQUIRE(take(*store, "GPU-b").has_value());
    const auto hour = std::chrono::hours(1);
    std::filesystem::last_write_time(path_ + "/leases", std::filesystem::file_time_type::clock::now() - hour);
  }
  /// A process that has a lease on GPU-a until it is killed.
  std::unique_ptr<Forked> holder() const {
    return std::make_unique<Forked>([this] {
      auto* own = store::DirectoryStore::open({path_, store::DirectoryOrigin::environment})->release();
      auto taken = take(*own, "GPU-a");
      return taken && taken->own.release() != nullptr;
    });
  }

 private:
  ScratchDirectory scratch_;
  std::string path_ = scratch_.path("leases");

 public:
  std::unique_ptr<store::DirectoryStore> store =
      *store::DirectoryStore::open({path_, store::DirectoryOrigin::environment});
};

TEST_CASE("real holders that go while the driver answers leave their device to a newer answer") {
  Scene scene(1);
  const QuietDirectory directory;
  SUBCASE("killed") {
    auto holder = directory.holder();
    REQUIRE(holder->succeeded());
    scene.source.on_answer = [&] {
      holder->kill();
      leave_memory(scene);
    };
    CHECK_FALSE(is_granted(scene, *directory.store));
  }
  SUBCASE("come, and killed") {
    scene.source.on_answer = [&] {
      if (scene.source.reads == 1) directory.holder()->kill();
      leave_memory(scene);
    };
    CHECK_FALSE(is_granted(scene, *directory.store));
  }
  SUBCASE("come, and gone in good order") {
    scene.source.on_answer = [&] {
      if (scene.source.reads == 1) REQUIRE(take(*directory.store, "GPU-a").has_value());
      leave_memory(scene);
    };
    CHECK_FALSE(is_granted(scene, *directory.store));
  }
  SUBCASE("gone before it was asked") {
    directory.holder()->kill();
    CHECK(is_granted(scene, *directory.store));
    CHECK(scene.source.reads == 1);
  }
}

}  // namespace
}  // namespace berth::leasing::old_facts_test
