#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "berth/store/lease_store.h"

namespace berth::store {

/// What the clients of one memory store share: the queue, the leases and the locks. For one thread.
struct MemoryBooks {
  std::map<TicketId, Ticket> tickets;               ///< alive
  std::map<TicketId, Ticket> ended;                 ///< leases whose holder died, until they are swept
  std::map<std::string, std::set<TicketId>> locks;  ///< of devices, by their UUID
  std::map<std::string, bool> foreign_locks;        ///< UUID → whole, of holders without a ticket
  std::map<TicketId, std::shared_ptr<MemoryBooks>> inside;
  std::uint64_t last_id = 0;
  std::int64_t lease_changes = 1;
};

/// The same contract as that of the directory, in memory: for tests of the code that uses a store,
/// and for questions about leases that are in no directory here (receipts/sampler.cpp). It never
/// sleeps: a sleep that nothing has ended yet returns as after a tick.
class MemoryStore : public LeaseStore {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryBooks> books) : books_(std::move(books)) {}

  using LeaseStore::join;
  using LeaseStore::look;
  LocksSeen see_locks() override;
  Result<Books> look(Extent extent, const std::optional<LocksSeen>& locks) override;
  Result<Joined> join(const Ticket& draft, const Decide& decide, const Entry& entry) override;
  std::int64_t lease_changes() override { return books_->lease_changes; }
  bool has_ended(TicketId lease) override { return !books_->tickets.contains(lease); }
  std::size_t waiting_at_most() override { return books_->tickets.size(); }
  Result<void> extend(TicketId lease,
                      const std::function<Result<std::int64_t>(const Ticket&)>& time_of) override;
  Result<void> set_yield(TicketId lease, std::optional<std::int64_t> yield_s) override;
  Result<void> set_words(TicketId lease, const std::string& command, const std::string& note) override;
  bool is_held_back(TicketId waiting) override;
  void ring(TicketId) override {}  // nobody sleeps
  Result<void> note_release(TicketId lease, const ReleaseCall& call, GateLimit limit) override;
  void sweep(const std::vector<TicketId>& keep) override;
  std::optional<sys::FileIdentity> file_of(const Ticket&) override { return std::nullopt; }
  Result<std::unique_ptr<LeaseStore>> inside(TicketId lease) override;
  std::string path() const override { return ""; }
  std::vector<std::string> notes() const override { return {}; }

 private:
  std::shared_ptr<MemoryBooks> books_;
};

}  // namespace berth::store
