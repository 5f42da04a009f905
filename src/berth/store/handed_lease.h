#pragma once

#include <vector>

#include "berth/core/ledger.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/descriptor.h"

namespace berth::store {

/// A lease that another process has taken for this one and has handed over: its descriptors, without the
/// directory and what it takes to decide. When this goes, our part ends; the lease ends with the last process
/// that has one.
class HandedLease {
 public:
  /// `descriptors` are those of OwnTicket::descriptors(), in that order.
  HandedLease(DirectoryChoice directory, TicketId id, std::vector<sys::Descriptor> descriptors);
  HandedLease(HandedLease&&) noexcept = default;
  HandedLease& operator=(HandedLease&&) noexcept = default;
  ~HandedLease() { drop(); }

  /// Ends it for all who share it, and lets the waiters know. Does nothing the second time.
  void release();
  /// Ends our part of it only.
  void drop();

 private:
  DirectoryChoice directory_;
  TicketId id_;
  std::vector<sys::Descriptor> descriptors_;  ///< the devices', then the ticket's
};

}  // namespace berth::store
