#include "berth/receipts/earlier_runs.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <type_traits>
#include <utility>

#include "berth/receipts/receipts_on_disk.h"
#include "berth/sys/detached_answer.h"
#include "berth/usage/memory_by_runs.h"
#include "berth/usage/receipt.h"

namespace berth::leasing {
namespace {

using namespace std::chrono_literals;

// A disk that works is faster by far. Without the record, a request counts as one of which nothing
// is known.
constexpr auto kPatienceWithHome = 1s;

/// `use` gets the receipts in a thread.
template <class Use>
auto begin_to_read(Use use) {
  using Told = std::invoke_result_t<Use, const std::vector<Receipt>&>;
  return sys::DetachedAnswer<Told>([use = std::move(use), folder = receipt_folder()] {
    return use(folder ? read_receipts(*folder) : std::vector<Receipt>());
  });
}

}  // namespace

std::function<std::function<std::vector<Moment>()>()> earlier_runs_of(const std::string& command) {
  return [command]() -> std::function<std::vector<Moment>()> {
    const auto told = std::make_shared<sys::DetachedAnswer<std::vector<Moment>>>(
        begin_to_read([command, uid = ::geteuid()](const std::vector<Receipt>& receipts) {
          return earlier_runs(receipts, uid, command);
        }));
    return [told] { return told->within(kPatienceWithHome); };
  };
}

SettledMemory settle_memory(Request request, const std::string& command) {
  if (!asks_memory_by_runs(request)) return {std::move(request)};
  auto told = begin_to_read([command, uid = ::geteuid()](const std::vector<Receipt>& receipts) {
    return memory_by_runs(receipts, uid, command);
  });
  const MemoryByRuns memory = told.within(kPatienceWithHome);
  return {with_memory(std::move(request), memory.bytes), in_words(memory)};
}

}  // namespace berth::leasing
