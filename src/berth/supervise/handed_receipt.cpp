// The host of a library may get no thread, no child and no work from us. So a process of its own
// waits for the end of the lease. It sees that end also where the host is killed.
#include "berth/supervise/handed_receipt.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/lease/lease_wire.h"
#include "berth/lease/left_behind.h"
#include "berth/queue/ticket_codec.h"
#include "berth/supervise/end_of_job.h"
#include "berth/supervise/energy_at_start.h"
#include "berth/supervise/run_receipt.h"
#include "berth/sys/child.h"
#include "berth/sys/clock.h"
#include "berth/sys/message.h"
#include "berth/sys/process_title.h"
#include "berth/view/receipt.h"

namespace berth::supervise {
namespace {

constexpr int kHost = STDIN_FILENO;
constexpr int kTold = STDOUT_FILENO;
constexpr std::size_t kTakenAtOnce = 4096;

bool is_in_run_of_its_own(const leasing::Domain& domain, const Ticket& ticket) {
  const std::uint64_t program = fingerprint_of(ticket.uid, ticket.command);
  std::string_view rest = domain.lease_path;
  for (const leasing::Level& level : domain.around) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto id = ticket_id_from_text(part);
    const auto books = level.store->look(store::Extent::leases);
    const Ticket* around = id && books ? find_ticket(books->ledger, *id) : nullptr;
    if (around != nullptr && fingerprint_of(around->uid, around->command) == program) return true;
  }
  return false;
}

// Three records, as the process reads them.
std::string lease_in_words(const leasing::Domain& domain, const leasing::HeldLease& lease) {
  const Ticket& ticket = lease.ticket();
  Snapshot granted;
  for (const Device* device : lease.devices()) granted.devices.emplace_back(*device).processes.reset();
  return encode_ticket(ticket) + leasing::encode(granted) +
         leasing::encode(leasing::LeaseGranted{.id = ticket.id,
                                               .directory = machine_directory(domain),
                                               .path = domain.path_of(ticket.id),
                                               .uuids = ticket.devices,
                                               .notes = {}});
}

struct LeaseTold {
  Ticket ticket;
  Snapshot granted;
  std::string directory;
  std::string path;
};

// nullopt: there is no lease.
std::optional<LeaseTold> read_lease() {
  std::string text;
  std::array<char, kTakenAtOnce> part{};
  for (ssize_t length = 0; (length = ::read(kTold, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(length));
  const auto take = [&text] {
    std::string record = text.substr(0, leasing::first_record(text));
    text.erase(0, record.size());
    return record;
  };
  auto ticket = decode_ticket(take());
  auto granted = leasing::decode_message(take());
  auto named = leasing::decode_message(take());
  if (!ticket || !granted || !named) return std::nullopt;
  auto* devices = std::get_if<Snapshot>(&*granted);
  auto* lease = std::get_if<leasing::LeaseGranted>(&*named);
  if (devices == nullptr || lease == nullptr) return std::nullopt;
  // A record has not what the kernel says of the file.
  ticket->id = lease->id;
  ticket->uid = ::geteuid();
  ticket->devices = lease->uuids;
  return LeaseTold{*std::move(ticket), std::move(*devices), std::move(lease->directory),
                   std::move(lease->path)};
}

// As the host said. It says nothing if it was killed.
Ending wait_for_end_of_lease(RunSampling& sampling, EnergyAtStart& energy) {
  std::string said;
  for (bool has_ended = false; !has_ended;) {
    sampling.go_on();
    energy.go_on();
    pollfd ready{kHost, POLLIN, 0};
    if (::poll(&ready, 1, sys::poll_timeout(earlier(sampling.next(), energy.next()))) <= 0) continue;
    const auto received = sys::receive_message(kHost);
    if (received) said += received->text;
    has_ended = !received || received->ended;
  }
  Ending ending{};
  return read_value(said, ending) ? ending : Ending::by_others;
}

void write_when_over(const LeaseTold& lease, source::SourceKind source,
                     const std::optional<SamplingTimes>& times) {
  const Ticket& ticket = lease.ticket;
  RunSampling sampling(ticket, lease.path, lease.directory, source, times);
  EnergyAtStart energy(ticket.shared ? std::vector<std::string>() : ticket.devices, source);
  const Ending ending = wait_for_end_of_lease(sampling, energy);
  const auto lasted = sys::milliseconds_since_boot() - granted_at(ticket);
  std::vector<const Device*> devices;
  for (const Device& device : lease.granted.devices) devices.push_back(&device);
  Receipt receipt = receipt_of(
      ticket, devices, {std::chrono::milliseconds(std::max<std::int64_t>(lasted, 0)), {0, 0}},
      sampling.samples(), [&] { return energy.told(); }, read_at_end(source));
  receipt.ending = ending;
  receipt.exit_status.reset();
  (void)ReceiptKeeping(receipt, "").trouble();
  // Nobody may be there.
  (void)sys::send_message(kHost, view::receipts_json({receipt}, view::Layout::lines));
}

}  // namespace

void HandedReceipt::begin() {
  std::array<int, 2> pipe{};
  const sys::Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing || ::pipe2(pipe.data(), O_CLOEXEC) != 0) return;
  const sys::Descriptor heard(pipe[0]);
  told_ = sys::Descriptor(pipe[1]);
  // A process that is stopped does not hold up the host.
  ::fcntl(told_.get(), F_SETFL, O_NONBLOCK);
  // The child is left alone: its parent ends, and the host does not know of it.
  (void)sys::Child::fork({host_, heard.get(), nothing.get()}, [this] {
    ::prctl(PR_SET_NAME, leasing::kReceiptKeeperName);
    // It has time: its waking takes no processor from the host, which has just got its lease.
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none);
    const auto lease = read_lease();
    if (!lease) ::_exit(0);
    // The signals of the socket were for the process that waited.
    ::fcntl(kHost, F_SETFL, ::fcntl(kHost, F_GETFL) & ~O_ASYNC);
    sys::show_as(fmt::format("{} {}", leasing::kReceiptKeeperName, to_text(lease->ticket.id)));
    // A file system that is somebody's working directory cannot be unmounted.
    if (::chdir("/") != 0) ::_exit(1);
    write_when_over(*lease, source_, times_);
    ::_exit(0);
  });
}

void HandedReceipt::keep(const leasing::Domain& domain, leasing::HeldLease lease) {
  if (is_in_run_of_its_own(domain, lease.ticket())) return end();
  const std::string words = lease_in_words(domain, lease);
  if (!told_) {
    // The process must have no descriptor of the lease, also not for the moment of its start.
    {
      const leasing::HeldLease given_up = std::move(lease);
    }
    begin();
  }
  [[maybe_unused]] const ssize_t written = ::write(told_.get(), words.data(), words.size());
  told_.close();
}

}  // namespace berth::supervise
