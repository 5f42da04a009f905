// A lease whose holder did not take it.

#include "berth/store/directory_ticket.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "berth/store/directory_store.h"
#include "berth/store/test/scratch_directory.h"

namespace berth::store::handed_lease_test {
namespace {

const std::string kGpu = "GPU-a";

std::unique_ptr<OwnTicket> take(DirectoryStore& store) {
  Ticket draft;
  draft.taker.pid = static_cast<std::uint32_t>(::getpid());
  draft.candidates = {kGpu};
  auto joined = store.join(draft, [](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{kGpu}, {{kGpu, true}}});
  });
  if (!joined) FAIL(joined.error().message);
  return std::move(joined->own);
}

HandedLease handed_by(const OwnTicket& own, const DirectoryChoice& choice) {
  std::vector<sys::Descriptor> copies;
  for (const int descriptor : own.descriptors()) copies.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  return {choice, own.ticket().id, std::move(copies)};
}

struct Lab {
  ScratchDirectory scratch;
  DirectoryChoice choice{scratch.path("leases"), DirectoryOrigin::environment};
  std::unique_ptr<DirectoryStore> store = std::move(*DirectoryStore::open(choice));

  /// A lease whose taker is gone: only what was handed over holds it.
  HandedLease handed() const {
    const auto own = take(*store);
    return handed_by(*own, choice);
  }
  std::size_t leases() const { return store->look()->ledger.tickets.size(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(choice.path + "/leases"), {}));
  }
};

TEST_CASE("it is held by whoever has the descriptors, and ends with them") {
  const Lab lab;
  {
    const HandedLease lease = lab.handed();
    CHECK(lab.leases() == 1);
    CHECK(lab.store->look(Extent::leases, lab.store->see_locks())->foreign_locks.empty());
  }
  CHECK(lab.leases() == 0);
  CHECK(lab.files() == 0);
  take(*lab.store);
}

TEST_CASE("a release ends it for all who have a part, and twice is once") {
  const Lab lab;
  const auto own = take(*lab.store);
  HandedLease lease = handed_by(*own, lab.choice);
  lease.release();
  lease.release();
  CHECK(lab.leases() == 0);
  CHECK(lab.files() == 0);
  CHECK(take(*lab.store) != nullptr);
}

TEST_CASE("while a fork has a part, the end of ours ends nothing") {
  const Lab lab;
  const auto own = take(*lab.store);
  HandedLease lease = handed_by(*own, lab.choice);
  lease.drop();
  CHECK(lab.leases() == 1);
  CHECK(lab.files() == 1);
}

TEST_CASE(
    "a directory that was removed meanwhile is no reason to fail, and another's ticket in a new one stays") {
  const Lab lab;
  HandedLease lease = lab.handed();
  std::filesystem::rename(lab.choice.path, lab.scratch.path("moved"));
  const auto newer = DirectoryStore::open(lab.choice);
  const auto own = take(**newer);
  lease.release();
  CHECK((*newer)->look()->ledger.tickets.size() == 1);
}

}  // namespace
}  // namespace berth::store::handed_lease_test
