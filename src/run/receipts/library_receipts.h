#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "berth/source/source.h"
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

}  // namespace berth::receipts
