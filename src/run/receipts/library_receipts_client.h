#pragma once

#include <optional>
#include <string>
#include <utility>

#include "berth/lease/acquire.h"
#include "berth/lease/domain.h"
#include "berth/receipts/sampler_client.h"
#include "berth/source/source.h"
#include "berth/sys/descriptor.h"

namespace berth::receipts {

/// Has the receipt kept of a lease that this process hands to another one, the *host*. The process
/// that keeps the receipts of this user and machine does so (library_receipts.h). It holds nothing
/// of the lease, so it may be killed: then there is no receipt.
class HandedReceipt {
 public:
  /// `host`: an end of a connection whose other end lives as long as the lease does. Over it the
  /// host may say how the lease ended (to_text of Ending) before it ends the connection, and it
  /// gets the receipt (docs/schema/receipt.json). `machine`: as machine_directory.
  HandedReceipt(int host, std::string machine, source::SourceKind source,
                const std::optional<SamplingTimes>& times)
      : host_(host), machine_(std::move(machine)), source_(source), times_(times) {}

  /// Connects to the process, and starts it if there is none. To be called while the driver is
  /// asked, when this process would wait anyway. REQUIRES: one thread.
  void begin();
  /// The request waits, and needs no such process meanwhile.
  void end() { keeper_.close(); }
  /// Tells the process which lease it is, and gives up our part of the lease. If the lease lies in
  /// a run of the same program, nothing is kept: the receipt of that run has it.
  void keep(const leasing::Domain& domain, leasing::HeldLease lease);

 private:
  int host_;
  std::string machine_;
  source::SourceKind source_;
  std::optional<SamplingTimes> times_;
  sys::Descriptor keeper_;  ///< a connection to the process
};

}  // namespace berth::receipts
