#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "berth/lease/domain.h"
#include "berth/lease/session.h"
#include "berth/receipts/make_receipt.h"
#include "berth/source/source.h"
#include "berth/sys/file.h"
#include "berth/usage/receipt.h"

// The process that keeps the receipts of the leases that libraries have: one for each user and
// machine. `berth __lease` hands it each lease over a connection of its own, as a LeaseToKeep and a
// descriptor of the connection with the host. That connection lives as long as the lease does, so
// its end is the end of the lease, however the host ended. The process holds nothing of a lease. If
// the request has waited, a second descriptor comes along, the watch of the wait: to be closed.
namespace berth::receipts {

struct LeaseToKeep {
  Receipt receipt;              ///< as receipt_at_grant
  std::int64_t granted_ms = 0;  ///< by the boot clock
  SampledLease sampled{};
  std::chrono::milliseconds sampled_after{};

  bool operator==(const LeaseToKeep&) const = default;
};

std::string encode_lease_to_keep(const LeaseToKeep& lease);
/// nullopt: the text is anything else.
std::optional<LeaseToKeep> decode_lease_to_keep(std::string_view text);

/// Writes receipts one after another, in a thread that lives on: a thread for each would cost more
/// than its line. If the home does not answer, no receipt is written any more, and those that come
/// while many wait are lost.
class ReceiptWriter {
 public:
  /// `write`: to the home. It is called in the thread, and may hang.
  explicit ReceiptWriter(std::function<void(const Receipt&)> write);

  /// Never waits. `then` is called in the thread, once the receipt was given to `write`; it owns
  /// what it uses, and does so for as long as the home does not answer. Throws std::system_error if
  /// the system gives no thread.
  void write(const Receipt& receipt, std::function<void()> then);

 private:
  struct Work;

  std::function<void(const Receipt&)> write_;
  std::shared_ptr<Work> work_{};  ///< null: there is no thread yet
};

/// Keeps the receipts until there has been no lease for a moment. Standard input is a socket that
/// listens, or something else; standard output is the first connection.
void keep_receipts(source::SourceKind source);

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
