// WORKERS processes lease and release the same devices, COUNT times in all, each time with all that
// a lease takes: the driver is asked, the queue is stood in. A table that they share says who has
// which device, apart from all that Berth does: an owner too many, or a cycle too few, shows there.
//
//     cycles BERTH WORKERS COUNT     the program whose probe is to be used. Says nanoseconds that all of
//                                    it took, cycles, owners too many, tickets left

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>

#include "berth/lease/session.h"
#include "berth/source/source.h"
#include "berth/store/directory_store.h"

namespace {

using namespace berth;

constexpr std::size_t kDevices = 64;

struct Table {
  std::array<std::atomic<int>, kDevices> owners{};
  std::atomic<long> done = 0;
  std::atomic<long> doubles = 0;
};

Table& share_table() {
  void* memory = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return *new (memory) Table;
}

Result<void> cycle(const leasing::SourceAccess& source, store::LeaseStore& store, Table& table) {
  Request request;
  Patience patience;
  patience.wait = true;
  auto acquired =
      leasing::acquire_by_queue(source, store, request, {}, {"cycles", "", "1 GPU"}, patience, {});
  if (!acquired) return std::unexpected(acquired.error());
  auto* lease = std::get_if<leasing::HeldLease>(&*acquired);
  if (lease == nullptr) return fail(ErrorCode::failure, "refused");
  std::atomic<int>& owners = table.owners[lease->devices().front()->index];
  if (owners.fetch_add(1) != 0) ++table.doubles;
  ++table.done;
  owners.fetch_sub(1);
  lease->release();
  return {};
}

Result<void> work(const char* program, long count, Table& table) {
  source::ProbeOptions options;
  options.program = program;
  options.keep = true;
  auto probe = source::ProbeSource::start(std::move(options));
  if (!probe) return std::unexpected(probe.error());
  const leasing::SourceAccess source{[&]() -> Result<source::Source*> { return &*probe; }, [] {}};
  auto store = store::DirectoryStore::open(store::choose_lease_directory());
  if (!store) return std::unexpected(store.error());
  for (; count > 0; --count) {
    if (auto done = cycle(source, **store, table); !done) return done;
  }
  return {};
}

// What is still there when nobody has a lease any more.
std::size_t left_over() {
  auto store = store::DirectoryStore::open(store::choose_lease_directory());
  const auto books = store ? (*store)->look() : std::unexpected(store.error());
  return books ? books->ledger.tickets.size() + books->ledger.ended.size() + books->ledger.odd.size() : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const long workers = std::atol(words[2]);
  const long each = workers > 0 ? std::atol(words[3]) / workers : 0;
  Table& table = share_table();
  const auto begin = std::chrono::steady_clock::now();
  for (long worker = 0; worker < workers; ++worker) {
    if (::fork() != 0) continue;
    const auto done = work(words[1], each, table);
    if (!done) fmt::print(stderr, "cycles: {}\n", done.error().message);
    ::_exit(done ? 0 : 1);
  }
  int failed = 0;
  for (int status = 0; ::wait(&status) > 0;) failed |= status;
  const auto took = std::chrono::steady_clock::now() - begin;
  const std::size_t left = left_over();
  fmt::print("{} {} {} {}\n", took.count(), table.done.load(), table.doubles.load(), left);
  return failed != 0 || table.done != each * workers || table.doubles != 0 || left != 0;
}
