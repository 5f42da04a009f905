#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "berth/store/device_locks.h"
#include "berth/store/directory_scan.h"
#include "berth/store/earlier_rivals.h"
#include "berth/store/fault.h"
#include "berth/store/lease_directory.h"
#include "berth/store/lease_store.h"
#include "berth/store/release_watch.h"
#include "berth/sys/bell.h"
#include "berth/sys/descriptor.h"

namespace berth::store {

/// Waits for the gate of a directory: its flock. The gate is left when the Descriptor ends. If the
/// wait takes longer than a second, tells which process is in the gate. Error: `not_now` if others
/// stay in it for longer than `limit`.
FaultOr<sys::Descriptor> enter_gate(const LeaseDirectory& directory, GateLimit limit, const Warn& warn);

/// As LeaseStore::halted_in_gate.
std::string who_is_halted_in_gate(const LeaseDirectory& directory);

/// The bell of a ticket that waits.
std::string bell_name(const LeaseDirectory& directory, TicketId id);

/// A ticket of this process in a lease directory.
class DirectoryTicket : public OwnTicket {
 public:
  /// Makes the ticket's file without a name, with its bytes locked. Error: the directory is full …
  static Result<std::unique_ptr<DirectoryTicket>> prepare(std::shared_ptr<const LeaseDirectory> directory,
                                                          const Ticket& draft, Warn warn);
  ~DirectoryTicket() override;

  /// Gives the ticket the next id and its place in the queue, and decides. REQUIRES: the gate is
  /// held.
  FaultOr<Decided> join_under_gate(const Decide& decide);
  /// Frees what is no longer needed. Not to be called while the gate is held, because others would
  /// wait for it.
  void left_gate();

  const Ticket& ticket() const override { return ticket_; }
  void read_ahead() override;
  using OwnTicket::decide;
  Result<Decided> decide(const Decide& decide, GateLimit limit) override;
  Result<void> wait_again(std::vector<std::string> candidates, GateLimit limit) override;
  Result<Woken> sleep_behind(TicketId rival, std::chrono::milliseconds tick,
                             const std::function<bool()>& sleep_on, const Beside& beside) override;
  bool is_far_back() const override { return earlier_rivals_.has_far_one(ticket_.id); }
  Result<Woken> sleep_until_released(const std::vector<std::string>& uuids,
                                     const std::vector<TicketId>& leases, const std::vector<int>& exits,
                                     std::chrono::milliseconds tick) override;
  void read_again() override;
  void end_watch() override {
    watch_.reset();
    if (!ticket_.yield_s) bell_.reset();
  }
  sys::Descriptor copy_of_watch() const override;
  const sys::Bell* listen() override;
  void tell_that_it_ends() override;
  void release() override;
  std::vector<int> descriptors() const override;

 private:
  DirectoryTicket(std::shared_ptr<const LeaseDirectory> directory, const Ticket& draft, Warn warn);
  Result<void> enter_queue(const IdsTaken& queue, const IdsTaken& leases);
  Result<void> take_number(Ledger leases);
  FaultOr<Decided> decide_under_gate(const Decide& decide);
  FaultOr<Decided> decide_on(Ledger leases, const Decide& decide);
  FaultOr<Decided> act(const Result<Decision>& decision, const Ledger& ledger);
  void set_mark(bool set);
  FaultOr<Decided> take(const Take& take, const Ledger& ledger);
  Result<void> become_lease(const Take& take);
  Result<void> rename_into_leases(Ticket& granted);
  Result<void> become_waiting();
  bool watch_anew(const Beside& beside);
  bool is_rung(const Beside& beside);
  void unlink_file() const;
  bool still_waits_here() const;

  std::shared_ptr<const LeaseDirectory> directory_;
  Warn warn_;
  Ticket ticket_;
  sys::Descriptor file_;
  off_t unmarked_bytes_ = 0;  ///< how many of the bytes of the mark are let go
  DeviceLocks locks_;
  EarlierRivals earlier_rivals_;
  std::optional<ReleaseWatch> watch_;
  std::optional<sys::Bell> bell_;
};

}  // namespace berth::store
