#include "berth/lease/earlier_runs.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include "berth/history/model/memory_by_runs.h"
#include "berth/history/model/receipt.h"
#include "berth/lease/receipt_files.h"
#include "berth/sys/detached_thread.h"

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
  const auto promise = std::make_shared<std::promise<Told>>();
  std::future<Told> told = promise->get_future();
  const auto read = [promise, use = std::move(use), folder = receipt_folder()] {
    promise->set_value(use(folder ? read_receipts(*folder) : std::vector<Receipt>()));
  };
  try {
    sys::begin_detached(read);
  } catch (const std::system_error&) {
    promise->set_value({});  // under a limit on processes
  }
  return told;
}

template <class Told>
Told what_was_told(std::future<Told>& told) {
  if (told.wait_for(kPatienceWithHome) != std::future_status::ready) return {};
  return told.get();
}

}  // namespace

EarlierRunsReading::EarlierRunsReading(const std::string& command)
    : told_(begin_to_read([command, uid = ::geteuid()](const std::vector<Receipt>& receipts) {
        return earlier_runs(receipts, uid, command).lasted_s;
      })) {}

std::vector<Moment> EarlierRunsReading::lasted_s() {
  return what_was_told(told_);
}

SettledMemory settle_memory(Request request, const std::string& command) {
  if (!asks_memory_by_runs(request)) return {std::move(request)};
  auto told = begin_to_read([command, uid = ::geteuid()](const std::vector<Receipt>& receipts) {
    return memory_by_runs(receipts, uid, command);
  });
  const MemoryByRuns memory = what_was_told(told);
  return {with_memory(std::move(request), memory.bytes), in_words(memory)};
}

}  // namespace berth::leasing
