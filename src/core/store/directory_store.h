#pragma once

#include <memory>
#include <string>

#include "berth/store/directory_ticket.h"
#include "berth/store/lease_directory.h"
#include "berth/store/lease_store.h"

namespace berth::store {

/// Tickets as files in a directory that all users of the machine share. The kernel holds the locks.
/// docs/lease-protocol.md describes the format.
class DirectoryStore : public LeaseStore {
 public:
  /// If the directory does not exist, the first join makes it; until then it counts as empty.
  /// Error: why it is not fit for use. `warn` gets a sentence for the user if something takes
  /// unusually long.
  static Result<std::unique_ptr<DirectoryStore>> open(const DirectoryChoice& choice, Warn warn = {});

  using LeaseStore::join;
  using LeaseStore::look;
  LocksSeen see_locks() override;
  std::string halted_in_gate() override;
  Result<Books> look(Extent extent, const std::optional<LocksSeen>& locks) override;
  Result<JoinedTicket> join(const Ticket& draft, const Decide& decide, const Entry& entry) override;
  std::int64_t lease_changes() override;
  bool has_ended(TicketId lease) override;
  std::size_t waiting_at_most() override;
  Result<void> extend(TicketId lease,
                      const std::function<Result<std::int64_t>(const Ticket&)>& time_of) override;
  Result<void> set_yield(TicketId lease, std::optional<std::int64_t> yield_s) override;
  Result<void> set_words(TicketId lease, const std::string& command, const std::string& note) override;
  bool is_held_back(TicketId waiting) override;
  Result<void> note_release(TicketId lease, const ReleaseCall& call, GateLimit limit) override;
  void ring(TicketId ticket) override;
  std::vector<UserRuns> outcomes() override;
  bool note_outcome(const PastRun& run) override;
  void sweep(const std::vector<TicketId>& keep) override;
  std::optional<sys::FileIdentity> file_of(const Ticket& ticket) override;
  Result<std::unique_ptr<LeaseStore>> inside(TicketId lease) override;
  std::string path() const override { return choice_.path; }
  std::vector<std::string> notes() const override;

  /// As opened; null while it does not exist.
  const LeaseDirectory* directory() const { return directory_.get(); }

 private:
  DirectoryStore(DirectoryChoice choice, Warn warn) : choice_(std::move(choice)), warn_(std::move(warn)) {}
  Result<void> refresh();
  using Rewrite = std::function<Result<std::string>(const Ticket& lease, std::string_view text)>;
  Result<void> rewrite(TicketId lease, GateLimit limit, const Rewrite& rewritten);

  DirectoryChoice choice_;
  Warn warn_;
  std::shared_ptr<const LeaseDirectory> directory_;  ///< shared with the tickets made in it
  std::vector<Remains> remains_;                     ///< in it, as the last look found them
};

}  // namespace berth::store
