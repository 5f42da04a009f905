#pragma once

#include <functional>
#include <memory>

#include "berth/usage/receipt.h"

namespace berth::receipts {

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

}  // namespace berth::receipts
