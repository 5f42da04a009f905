#include "berth/receipts/receipt_writer.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

#include "berth/sys/detached_thread.h"

namespace berth::receipts {
namespace {

constexpr std::size_t kMostReceiptsWaiting = 1000;

}  // namespace

struct ReceiptWriter::Work {
  struct ToWrite {
    Receipt receipt;
    std::function<void()> then;
  };

  explicit Work(std::function<void(const Receipt&)> writes) : write(std::move(writes)) {}

  [[noreturn]] void keep_writing() {
    for (;;) {
      std::unique_lock lock(mutex);
      news.wait(lock, [this] { return !waiting.empty(); });
      const ToWrite next = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      write(next.receipt);
      next.then();
    }
  }

  std::function<void(const Receipt&)> write;
  std::mutex mutex;
  std::condition_variable news;
  std::deque<ToWrite> waiting;
};

ReceiptWriter::ReceiptWriter(std::function<void(const Receipt&)> write) : write_(std::move(write)) {}

void ReceiptWriter::write(const Receipt& receipt, std::function<void()> then) {
  if (!work_) {
    const auto work = std::make_shared<Work>(write_);
    sys::begin_detached([work] { work->keep_writing(); });
    work_ = work;
  }
  {
    const std::scoped_lock lock(work_->mutex);
    if (work_->waiting.size() < kMostReceiptsWaiting) work_->waiting.push_back({receipt, std::move(then)});
  }
  work_->news.notify_one();
}

}  // namespace berth::receipts
