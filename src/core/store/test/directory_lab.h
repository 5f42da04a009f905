#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/store/directory_store.h"
#include "berth/store/test/scratch_directory.h"

namespace berth::store {

/// A lease directory, and anybody who opens it.
class Lab {
 public:
  std::unique_ptr<DirectoryStore> open(Warn tell = {}) const {
    auto opened = DirectoryStore::open({path, DirectoryOrigin::environment}, std::move(tell));
    if (!opened) FAIL(opened.error().message);
    return std::move(*opened);
  }
  Ledger ledger() const { return open()->look()->ledger; }
  std::string file(const std::string& name) const { return path + "/" + name; }

 private:
  ScratchDirectory scratch_;

 public:
  const std::string path = scratch_.path("leases");
};

inline Ticket draft(const std::string& uuid) {
  Ticket ticket;
  ticket.taker.pid = static_cast<std::uint32_t>(::getpid());
  ticket.candidates = {uuid};
  return ticket;
}

inline Result<JoinedTicket> try_take(LeaseStore& store, const std::string& uuid) {
  return store.join(draft(uuid), [&](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{uuid}, {{uuid, true}}});
  });
}
inline std::unique_ptr<OwnTicket> take(LeaseStore& store, const std::string& uuid) {
  auto joined = try_take(store, uuid);
  if (!joined || !std::holds_alternative<Taken>(joined->outcome)) return nullptr;
  return std::move(joined->own);
}
/// A share of a device that can lend 80 bytes.
inline std::unique_ptr<OwnTicket> take_share(LeaseStore& store, const std::string& uuid,
                                             std::uint64_t promise_bytes) {
  Ticket share = draft(uuid);
  share.shared = true;
  share.promise_bytes = promise_bytes;
  auto joined = store.join(share, [&](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{uuid}, {{uuid, false, promise_bytes, 80}}});
  });
  if (!joined || !std::holds_alternative<Taken>(joined->outcome)) return nullptr;
  return std::move(joined->own);
}
inline std::unique_ptr<OwnTicket> wait_for(LeaseStore& store, const std::string& uuid) {
  auto joined =
      store.join(draft(uuid), [](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{}); });
  return joined ? std::move(joined->own) : nullptr;
}

inline std::vector<ForeignLock> foreign_locks(LeaseStore& store) {
  return store.look(Extent::leases, store.see_locks())->foreign_locks;
}

/// A process that holds a lease on `uuid` until it is killed. It never ends its objects in good
/// order.
inline std::function<bool()> hold(const Lab& lab, const std::string& uuid) {
  return [&lab, uuid] {
    auto* store = lab.open().release();
    return take(*store, uuid).release() != nullptr;
  };
}
inline std::function<bool()> queue_for(const Lab& lab, const std::string& uuid) {
  return [&lab, uuid] {
    auto* store = lab.open().release();
    return wait_for(*store, uuid).release() != nullptr;
  };
}

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace berth::store
