#pragma once

#include <vector>

#include "berth/store/lease_directory.h"
#include "berth/sys/descriptor.h"
#include "berth/verdict/ledger.h"

namespace berth::store {

/// A lease that another process has taken for this one and has handed over. It has the lease's
/// descriptors, but neither the directory nor the code to decide. When this object ends, our part
/// ends; the lease ends with the last process that has a part.
class HandedLease {
 public:
  /// `descriptors` are those of OwnTicket::descriptors(), in that order.
  HandedLease(DirectoryChoice directory, TicketId id, std::vector<sys::Descriptor> descriptors);
  HandedLease(HandedLease&&) noexcept = default;
  HandedLease& operator=(HandedLease&&) noexcept = default;
  ~HandedLease() { drop(); }

  /// Ends the lease for all processes that share it, and lets the waiters know. Does nothing the
  /// second time.
  void release();
  /// Ends only our part of the lease.
  void drop();

 private:
  DirectoryChoice directory_;
  TicketId id_;
  std::vector<sys::Descriptor> descriptors_;  ///< the devices', then the ticket's
};

}  // namespace berth::store
