#include "berth/receipts/library_receipts.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/api/lease_messages.h"
#include "berth/base/record.h"
#include "berth/base/record_fields.h"
#include "berth/command/release.h"
#include "berth/receipts/make_receipt.h"
#include "berth/receipts/receipts_on_disk.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/sys/socket.h"
#include "berth/usage/run_samples.h"
#include "berth/view/receipt.h"

namespace berth::receipts {
namespace {

using namespace std::chrono_literals;
using LibraryClock = std::chrono::steady_clock;

constexpr int kListening = STDIN_FILENO;
constexpr int kFirstConnection = STDOUT_FILENO;
// A program that leases again and again finds the process that it had before.
constexpr auto kStaysWithoutLease = 2s;
// A host that asks for the receipt gets it also if the home does not answer.
constexpr auto kWaitsForLine = 1s;
constexpr std::size_t kMostLeaseBytes = 1UL << 20U;
constexpr std::size_t kMostReceiptsWaiting = 1000;

constexpr auto kLeaseToKeep = record_of<LeaseToKeep>("berth-lease-to-keep", 1, [](auto& lease, auto&& field) {
  field("granted_ms", lease.granted_ms);
  field("sampled_after_ms", lease.sampled_after);
});

/// A connection over which a lease is to come.
struct LeaseComing {
  sys::Descriptor connection;
  bool may_say = true;  ///< there may be something to read
  std::string text{};   ///< as far as it has come
  std::vector<sys::Descriptor> descriptors{};
};

/// A lease of which this process keeps the receipt.
struct KeptLease {
  KeptLease(LeaseToKeep told, sys::Descriptor host_of_it, source::SourceKind source)
      : host(std::move(host_of_it)),
        receipt(std::move(told.receipt)),
        granted_ms(told.granted_ms),
        energy(told.sampled.shared ? std::vector<std::string>() : told.sampled.devices, source),
        sampling(std::move(told.sampled), source, told.sampled_after) {}

  sys::Descriptor host;
  bool may_say = true;
  std::string said{};  ///< by the host, of the end
  Receipt receipt;
  std::int64_t granted_ms;
  EnergyAtStart energy;
  RunSampling sampling;
  std::atomic<bool> is_being_told = false;  ///< a thread sends the host the receipt, or has done so
  std::atomic<bool> is_told = false;        ///< the host was sent the receipt, or is not there any more
  sys::Deadline told_at_last{};             ///< whether or not its line is written by then
};

// The host says nothing if it was killed.
void complete_receipt(KeptLease& lease, std::chrono::milliseconds lasted, source::SourceKind source) {
  Receipt& receipt = lease.receipt;
  end_receipt(
      receipt, {.lasted = lasted}, lease.sampling.samples(), [&] { return lease.energy.told(); },
      read_at_end(source));
  if (!read_value(lease.said, receipt.ending)) receipt.ending = Ending::by_others;
  receipt.exit_status.reset();
}

// Once, whichever thread comes first.
void tell_host(KeptLease& lease) {
  if (lease.is_being_told.exchange(true)) return;
  // To make the document takes as long as all else of a receipt.
  pollfd host{lease.host.get(), 0, 0};
  if (::poll(&host, 1, 0) == 0) {
    (void)sys::send_message(lease.host.get(), view::receipts_json({lease.receipt}, view::Layout::lines));
    // The end of the text. This process may let go of the lease later.
    ::shutdown(lease.host.get(), SHUT_WR);
  }
  // Only now: this process may end as soon as all hosts were told.
  lease.is_told = true;
}

void write_line(const Receipt& receipt) {
  static const std::optional<std::string> folder = receipt_folder();
  if (folder) note_receipt(*folder, receipt);
}

class LibraryReceipts {
 public:
  explicit LibraryReceipts(source::SourceKind source) : source_(source) {
    int listens = 0;
    socklen_t length = sizeof listens;
    listens_ = ::getsockopt(kListening, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0;
    coming_.push_back({.connection = sys::Descriptor(::fcntl(kFirstConnection, F_DUPFD_CLOEXEC, 3))});
    ::dup2(STDERR_FILENO, kFirstConnection);
  }

  void go() {
    do {
      wait();
      take_connections();
      take_leases();
      hear_hosts();
      tell_hosts();
    } while (goes_on());
  }

 private:
  void wait() {
    sys::Deadline until;
    if (leases_.empty() && coming_.empty()) until = stays_until_;
    for (const auto& lease : ended_) until = earlier(until, lease->told_at_last);
    for (const auto& lease : leases_)
      until = earlier(until, earlier(lease->sampling.next(), lease->energy.next()));
    // After the shutdown it would be ready for ever.
    std::vector<pollfd> ready{{listens_ ? kListening : -1, POLLIN, 0}};
    for (const auto& each : coming_) ready.push_back({each.connection.get(), POLLIN, 0});
    for (const auto& each : leases_) ready.push_back({each->host.get(), POLLIN, 0});
    const int came = ::poll(ready.data(), ready.size(), sys::poll_timeout(until));
    auto next = ready.begin();
    const auto is_ready = [&] { return came < 0 || (next++)->revents != 0; };
    may_come_ = is_ready();
    for (auto& each : coming_) each.may_say = is_ready();
    for (const auto& each : leases_) each->may_say = is_ready();
  }

  void take_connections() {
    while (listens_ && may_come_) {
      sys::Descriptor connection = sys::accept_own(kListening);
      if (!connection) return;
      coming_.push_back({.connection = std::move(connection)});
    }
  }

  void take_leases() {
    std::erase_if(coming_,
                  [this](LeaseComing& coming) { return coming.may_say && !is_still_coming(coming); });
  }

  bool is_still_coming(LeaseComing& coming) {
    auto received = sys::receive_message(coming.connection.get());
    if (!received) return false;
    coming.text += received->text;
    std::ranges::move(received->descriptors, std::back_inserter(coming.descriptors));
    if (!received->ended) return coming.text.size() < kMostLeaseBytes;
    auto lease = decode_lease_to_keep(coming.text);
    if (lease && !coming.descriptors.empty()) keep(*std::move(lease), std::move(coming.descriptors.front()));
    return false;
  }

  void keep(LeaseToKeep lease, sys::Descriptor host) {
    // The signals of the socket were for the process that waited for the lease.
    ::fcntl(host.get(), F_SETFL, ::fcntl(host.get(), F_GETFL) & ~O_ASYNC);
    leases_.push_back(std::make_shared<KeptLease>(std::move(lease), std::move(host), source_));
  }

  void hear_hosts() {
    std::erase_if(leases_, [this](const auto& lease) {
      lease->sampling.go_on();
      lease->energy.go_on();
      if (!lease->may_say) return false;
      const auto received = sys::receive_message(lease->host.get());
      if (received) lease->said += received->text;
      if (received && !received->ended) return false;
      end(lease);
      return true;
    });
  }

  // In threads, because the driver and the home may take their time, and other leases end
  // meanwhile.
  void end(const std::shared_ptr<KeptLease>& lease) {
    const std::chrono::milliseconds lasted(
        std::max<std::int64_t>(sys::milliseconds_since_boot() - lease->granted_ms, 0));
    ended_.push_back(lease);
    try {
      if (is_worth_asking(lasted)) {
        sys::begin_detached([lease = std::shared_ptr(lease), lasted, source = source_] {
          complete_receipt(*lease, lasted, source);
          (void)ReceiptKeeping(lease->receipt, "").trouble();
          tell_host(*lease);
        });
      } else {
        complete_receipt(*lease, lasted, source_);
        lease->told_at_last = LibraryClock::now() + kWaitsForLine;
        // A home that does not answer costs the lines of leases, and holds nothing of theirs.
        writer_.write(lease->receipt, [told = std::weak_ptr(lease)] {
          if (const auto still_there = told.lock()) tell_host(*still_there);
        });
      }
    } catch (const std::system_error&) {
      // As under a limit on processes: there is no receipt.
      lease->is_told = true;
    }
  }

  void tell_hosts() {
    const auto now = LibraryClock::now();
    std::erase_if(ended_, [now](const auto& lease) {
      if (lease->told_at_last && *lease->told_at_last <= now) tell_host(*lease);
      return lease->is_told.load();
    });
  }

  bool goes_on() {
    const auto now = LibraryClock::now();
    if (!leases_.empty() || !coming_.empty() || !ended_.empty()) {
      stays_until_ = now + kStaysWithoutLease;
      return true;
    }
    if (now < stays_until_) return true;
    if (!listens_) return false;
    // From here on nobody can connect, and what has connected before is still taken.
    ::shutdown(kListening, SHUT_RD);
    may_come_ = true;
    take_connections();
    listens_ = false;
    return !coming_.empty();
  }

  source::SourceKind source_;
  bool listens_ = false;
  bool may_come_ = true;
  std::vector<LeaseComing> coming_;
  std::vector<std::shared_ptr<KeptLease>> leases_;
  std::vector<std::shared_ptr<KeptLease>> ended_;  ///< whose receipts are being written
  ReceiptWriter writer_{write_line};
  LibraryClock::time_point stays_until_{};
};

}  // namespace

std::string encode_lease_to_keep(const LeaseToKeep& lease) {
  return kLeaseToKeep.encode(lease) + encode_sampled_lease(lease.sampled) + encode_receipt(lease.receipt);
}

std::optional<LeaseToKeep> decode_lease_to_keep(std::string_view text) {
  const auto take = [&text] {
    const std::string_view record = text.substr(0, api::first_record(text));
    text.remove_prefix(record.size());
    return record;
  };
  auto lease = kLeaseToKeep.decode(take());
  auto sampled = decode_sampled_lease(take());
  auto receipts = decode_receipts(text);
  if (!lease || !sampled || receipts.size() != 1) return std::nullopt;
  lease->sampled = *std::move(sampled);
  lease->receipt = std::move(receipts.front());
  return *std::move(lease);
}

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

void keep_receipts(source::SourceKind source) {
  LibraryReceipts(source).go();
}

// The host of a library may get no thread, no child and no work from us. So a process of its own
// waits for the end of the lease. It sees that end also where the host is killed. A process for
// each lease would cost a fork at each grant, so one serves all leases of a user.

namespace {

bool is_in_run_of_its_own(const leasing::Domain& domain, const Ticket& ticket) {
  const std::uint64_t program = fingerprint_of(ticket.uid, ticket.command);
  std::string_view rest = domain.lease_path;
  for (const leasing::Level& level : domain.around) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto id = ticket_id_from_text(part);
    const auto books = level.store->look(store::Extent::leases);
    const Ticket* around = id && books ? find_ticket(books->ledger, *id, TicketPhase::granted) : nullptr;
    if (around != nullptr && fingerprint_of(around->uid, around->command) == program) return true;
  }
  return false;
}

// The process writes into the home, and sees the processes, of the program for which it was
// started; it ends with the control group of that program (a container, a job of Slurm, a service).
std::size_t surroundings() {
  struct stat mounts{};
  ::stat("/proc/self/ns/mnt", &mounts);
  return std::hash<std::string>()(fmt::format("{}\n{}\n{}", receipt_folder().value_or(""), mounts.st_ino,
                                              sys::read_whole("/proc/self/cgroup").value_or("")));
}

}  // namespace

void HandedReceipt::begin() {
  const auto name = sys::socket_name("receipts", ::geteuid(), machine_, fmt::format("{:x}", surroundings()));
  if (!name) return;
  keeper_ = sys::connect_to(*name);
  if (keeper_) return;
  // Empty if somebody else has the name, or another process takes it at this moment: then the new
  // one serves this lease alone.
  const sys::Descriptor listening = sys::listen_at(*name);
  const sys::Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::array<int, 2> ends{};
  if (!nothing || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return;
  keeper_ = sys::Descriptor(ends[0]);
  const sys::Descriptor theirs(ends[1]);
  const int listens = listening ? listening.get() : nothing.get();
  // The child is left alone: its parent ends, and the host does not know of it.
  (void)sys::Child::fork({listens, theirs.get(), nothing.get()}, [source = source_] {
    ::prctl(PR_SET_NAME, command::kReceiptKeeperName);
    // It has time: its waking takes no processor from the host, which has just got its lease.
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none);
    sys::show_as(command::kReceiptKeeperName);
    // A file system that is somebody's working directory cannot be unmounted.
    if (::chdir("/") != 0) ::_exit(1);
    sys::raise_limits();
    keep_receipts(source);
    ::_exit(0);
  });
}

void HandedReceipt::keep(const leasing::Domain& domain, leasing::HeldLease lease) {
  const Ticket ticket = lease.ticket();
  if (is_in_run_of_its_own(domain, ticket)) return end();
  const LeaseToKeep words{.receipt = receipt_at_grant(ticket, lease.devices()),
                          .granted_ms = granted_at(ticket),
                          .sampled = sampled_lease(ticket, domain, times_),
                          .sampled_after = times_ ? times_->after : std::chrono::milliseconds(0)};
  // The kernel takes some milliseconds to end the watch of a wait. The host waits for the end of
  // this process, and nobody for the one that keeps the receipt.
  sys::Descriptor watch = lease.copy_of_watch();
  // The process must have no descriptor of the lease, also not for the moment of its start.
  {
    const leasing::HeldLease given_up = std::move(lease);
  }
  if (!keeper_) begin();
  std::vector<int> handed{host_};
  if (watch) handed.push_back(watch.get());
  // A process that is stopped does not hold up the host: it has room for this, or there is no
  // receipt.
  (void)sys::send_message(keeper_.get(), encode_lease_to_keep(words), handed);
  // In this order: the process reads to the end of the connection, and then has the last copy.
  watch.close();
  keeper_.close();
}

}  // namespace berth::receipts
