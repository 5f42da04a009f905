// The host of a library may get no thread, no child and no work from us. So a process of its own
// waits for the end of the lease. It sees that end also where the host is killed. A process for
// each lease would cost a fork at each grant, so one serves all leases of a user.
#include "berth/receipts/library_receipts_client.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "berth/command/left_behind.h"
#include "berth/receipts/library_receipts.h"
#include "berth/receipts/make_receipt.h"
#include "berth/receipts/receipts_on_disk.h"
#include "berth/sys/child.h"
#include "berth/sys/file.h"
#include "berth/sys/named_socket.h"
#include "berth/sys/process_title.h"
#include "berth/sys/resource_limits.h"
#include "berth/sys/socket_message.h"

namespace berth::receipts {
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
  return std::hash<std::string>()(fmt::format("{}\n{}\n{}", leasing::receipt_folder().value_or(""),
                                              mounts.st_ino,
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
    ::prctl(PR_SET_NAME, leasing::kReceiptKeeperName);
    // It has time: its waking takes no processor from the host, which has just got its lease.
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none);
    sys::show_as(leasing::kReceiptKeeperName);
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
