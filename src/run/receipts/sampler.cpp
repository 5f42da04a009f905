#include "berth/receipts/sampler.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/api/lease_messages.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/device/device.h"
#include "berth/device/device_readings.h"
#include "berth/lease/attribution.h"
#include "berth/store/lease_store.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/sys/socket.h"
#include "berth/usage/run_samples.h"

namespace berth::receipts {
namespace {

constexpr uid_t kRoot = 0;
// There is one sampler for each user. A user who connects again and again delays no look by more
// than these.
constexpr int kMostAtOnce = 256;
constexpr std::size_t kMostAskers = 1000;

bool is_told_to_all(const Device& device) {
  return vendor_of(device).tells_all_users;
}

}  // namespace

std::optional<sys::SocketName> told_looks(const std::string& path) {
  struct stat pids{};
  if (::stat("/proc/self/ns/pid", &pids) != 0) return std::nullopt;
  return sys::socket_name("looks", kRoot, path, fmt::format("{}", pids.st_ino));
}

void LookTeller::listen(const std::string& path) {
  const auto name = told_looks(path);
  if (socket_ && name == name_) return;
  name_ = name;
  socket_ = name_ ? sys::listen_at(*name_) : sys::Descriptor();
}

void LookTeller::hear(const std::string& path) {
  if (::geteuid() != kRoot) return;
  listen(path);
  std::erase_if(askers_, [](const auto& each) {
    const Asker& asker = each.second;
    return asker.is_told && sys::is_all_read(asker.connection.get());
  });
  for (int left = kMostAtOnce; left > 0 && socket_; --left) {
    sys::Descriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    const auto user = sys::peer_user(connection.get());
    if (user && askers_.size() < kMostAskers) askers_.try_emplace(*user, Asker{std::move(connection)});
  }
}

void LookTeller::tell(const Snapshot* look) {
  if (look == nullptr || !std::ranges::all_of(look->devices, is_told_to_all)) {
    std::erase_if(askers_, [](const auto& each) { return !each.second.is_told; });
    return;
  }
  std::string text;
  for (auto& [user, asker] : askers_) {
    if (std::exchange(asker.is_told, true)) continue;
    if (text.empty()) text = encode_snapshot(look_for_samplers(*look));
    // A look that is longer than the socket holds is cut off, and does not count.
    (void)sys::send_message(asker.connection.get(), text);
    ::shutdown(asker.connection.get(), SHUT_WR);
  }
}

namespace {

using namespace std::chrono_literals;
using SamplerClock = std::chrono::steady_clock;

// A run that has just come is looked at soon, but a hundred that come together are looked at once.
constexpr auto kSoon = 1s;
// Longer than the start of a process takes.
constexpr auto kWaitsForFirstRun = 10s;
constexpr std::size_t kMostWishBytes = 64UL << 10U;
constexpr std::size_t kMostLookBytes = 4UL << 20U;

// It is there as soon as its socket is: the child takes what has come meanwhile.
void start_sampler(const sys::SocketName& name, source::SourceKind source) {
  const sys::Descriptor socket = sys::listen_at(name);
  if (!socket) return;
  const auto program = command::program_path();
  if (!program) return;
  // The child is left alone.
  (void)sys::Child::spawn({.program = *program,
                           .arguments = {"__sample", fmt::format("--source={}", source::to_text(source))},
                           .input = socket.get()});
}

/// The leases in a path of them, as BERTH_LEASE has it.
std::vector<TicketId> leases_in(std::string_view path) {
  std::vector<TicketId> leases;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (const auto id = ticket_id_from_text(part)) leases.push_back(*id);
    path.remove_prefix(std::min(part.size() + 1, path.size()));
  }
  return leases;
}

/// A run that wants samples.
struct SampledRun {
  sys::Descriptor connection;
  bool may_say = true;     ///< there may be something to read
  sys::Descriptor seen{};  ///< empty: its wish has not come yet
  std::string wish{};      ///< as far as it has come
  SampledLease lease{};
  SamplerClock::time_point begun{};
  Ticket ticket{};  ///< as attribution wants it
  RunSamples samples{};
};

class Sampler {
 public:
  Sampler(command::Environment& environment, source::SourceKind source)
      : environment_(environment), source_(source) {}

  void go() {
    next_look_ = SamplerClock::now() + kWaitsForFirstRun;
    for (;;) {
      wait();
      take_runs();
      take_wishes();
      if (runs_.empty() && (had_run_ || SamplerClock::now() >= next_look_)) return;
      if (agent_)
        hear_agent();
      else if (SamplerClock::now() >= next_look_ && !runs_.empty())
        begin_look();
    }
  }

 private:
  void wait() {
    std::vector<pollfd> ready{{STDIN_FILENO, POLLIN, 0}};
    for (const auto& run : runs_) ready.push_back({run->connection.get(), POLLIN, 0});
    ready.push_back({agent_.get(), POLLIN, 0});
    const auto until = agent_ ? std::optional(waits_for_agent_until_) : next_look_;
    const int came = ::poll(ready.data(), ready.size(), sys::poll_timeout(until));
    // Of a thousand runs, hardly one says something between two looks.
    for (std::size_t i = 0; i < runs_.size(); ++i) runs_[i]->may_say = came < 0 || ready[i + 1].revents != 0;
  }

  void take_runs() {
    for (;;) {
      sys::Descriptor connection = sys::accept_own(STDIN_FILENO);
      if (!connection) return;
      const auto peer = sys::own_peer(connection.get());
      if (!peer) continue;
      had_run_ = true;
      auto run = std::make_unique<SampledRun>(SampledRun{.connection = std::move(connection)});
      run->ticket.taker = sys::unique_process(*peer);
      runs_.push_back(std::move(run));
    }
  }

  void take_wishes() {
    std::erase_if(runs_, [this](const auto& run) { return run->may_say && !is_there(*run); });
  }

  // False: the run is over, or says what no run says.
  bool is_there(SampledRun& run) {
    auto received = sys::receive_message(run.connection.get());
    if (!received || received->ended) return false;
    if (has_begun(run)) return received->text.empty();
    run.wish += received->text;
    if (!received->descriptors.empty()) run.seen = std::move(received->descriptors.front());
    if (api::first_record(run.wish) == 0) return run.wish.size() < kMostWishBytes;
    const auto lease = decode_sampled_lease(run.wish);
    if (!lease || !run.seen || lease->every_ms <= 0) return false;
    begin(run, *lease);
    return true;
  }

  static bool has_begun(const SampledRun& run) { return run.lease.every_ms > 0; }

  void begin(SampledRun& run, const SampledLease& lease) {
    run.lease = lease;
    run.begun = SamplerClock::now();
    run.samples.every_ms = lease.every_ms;
    run.ticket.id = lease.lease;
    run.ticket.phase = TicketPhase::granted;
    run.ticket.uid = ::geteuid();
    run.ticket.devices = lease.devices;
    run.ticket.shared = lease.shared;
    run.ticket.job = lease.job;
    // A process that belonged to nobody, or to a lease around this one or inside of it, may belong
    // to this run.
    std::vector<TicketId> others = leases_in(lease.path);
    for (const auto& inner : runs_) {
      if (leasing::names_lease(inner->lease.path, lease.lease)) others.push_back(inner->lease.lease);
    }
    std::erase_if(of_processes_,
                  [&](const auto& each) { return std::ranges::find(others, each.second) != others.end(); });
    std::erase_if(known_, [this](std::uint32_t pid) { return !of_processes_.contains(pid); });
    const auto soon = last_look_ + std::min<SamplerClock::duration>(kSoon, every());
    next_look_ = std::min(next_look_, std::max(soon, SamplerClock::now()));
  }

  auto find_run(TicketId lease) const {
    return std::ranges::find(runs_, lease, [](const auto& run) { return run->lease.lease; });
  }

  SamplerClock::duration every() const {
    std::int64_t least_ms = std::numeric_limits<std::int64_t>::max();
    for (const auto& run : runs_) {
      if (has_begun(*run)) least_ms = std::min(least_ms, run->lease.every_ms);
    }
    return least_ms == std::numeric_limits<std::int64_t>::max() ? SamplerClock::duration(kWaitsForFirstRun)
                                                                : std::chrono::milliseconds(least_ms);
  }

  void begin_look() {
    last_look_ = SamplerClock::now();
    next_look_ = last_look_ + every();
    agent_ = connect_to_agent();
    told_.clear();
    waits_for_agent_until_ = last_look_ + std::chrono::milliseconds(kWaitsForAgentMs);
    if (!agent_) look_at_driver();
  }

  // Empty: there is none, or its look may come too late. A source that was named is not another's.
  sys::Descriptor connect_to_agent() const {
    const auto every_ms = std::chrono::duration_cast<std::chrono::milliseconds>(every()).count();
    const auto run = std::ranges::find_if(runs_, [](const auto& each) { return has_begun(*each); });
    if (run == runs_.end() || !source_.is_automatic() || !may_wait_for_agent(every_ms)) return {};
    const auto name = told_looks((*run)->lease.machine);
    return name ? sys::connect_to(*name) : sys::Descriptor();
  }

  void hear_agent() {
    const auto received = sys::receive_message(agent_.get());
    if (received) told_ += received->text;
    const bool ended = !received || received->ended || told_.size() > kMostLookBytes;
    if (!ended && SamplerClock::now() < waits_for_agent_until_) return;
    agent_.close();
    auto told = decode_snapshot(told_);
    if (!told || !is_worth_own_look(*told)) return look_at_driver();
    leave_out_ended(*told);
    // The driver need not be open for both.
    environment_.end_probe();
    // A probe that was ended at an earlier look has ended by now.
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    // The agent may have looked before those that began since then were there.
    take_look(*told, last_look_);
  }

  // Processes that have ended since the agent looked have no parents any more that tell whose they
  // were.
  static void leave_out_ended(Snapshot& told) {
    for (Device& device : told.devices) {
      if (!device.processes) continue;
      std::erase_if(*device.processes, [](const Process& process) {
        return ::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH;
      });
    }
  }

  void look_at_driver() {
    auto source = environment_.source(source_);
    const auto snapshot = source ? (*source)->read(readings_of_sampler()) : std::unexpected(source.error());
    // The look took its time, and a driver that hangs takes much.
    next_look_ = std::max(next_look_, SamplerClock::now());
    if (snapshot) take_look(*snapshot, SamplerClock::now());
  }

  // Of runs that had begun by `begun_by`.
  void take_look(const Snapshot& snapshot, SamplerClock::time_point begun_by) {
    attribute(snapshot);
    const DescribeProcess describe = [](std::uint32_t pid) {
      const auto owner = sys::process_owner(static_cast<pid_t>(pid));
      return std::pair(owner ? sys::user_name(*owner) : std::string(),
                       sys::process_command(static_cast<pid_t>(pid)));
    };
    // Of a thousand leases that share a card, each is held against all processes there.
    std::map<TicketId, std::multimap<std::uint32_t, TicketId>> own;
    for (const auto& [pid, lease] : of_processes_) own[lease].emplace(pid, lease);
    for (const auto& run : runs_) {
      if (!has_begun(*run) || run->begun > begun_by) continue;
      add_sample(run->samples, run->lease, snapshot, own[run->lease.lease], describe);
      const std::string text = encode_run_samples(run->samples);
      std::ignore = ::pwrite(run->seen.get(), text.data(), text.size(), 0);
    }
  }

  // To find the owner of a process is a walk through /proc, so it is done once.
  void attribute(const Snapshot& snapshot) {
    Snapshot news;
    bool is_any_new = false;
    std::set<std::uint32_t> there;
    for (const Device& device : snapshot.devices) {
      if (!device.processes) continue;
      Device& copy = news.devices.emplace_back();
      copy.uuid = device.uuid;
      copy.processes.emplace();
      for (const Process& process : *device.processes) {
        there.insert(process.pid);
        if (known_.contains(process.pid)) continue;
        copy.processes->push_back(process);
        is_any_new = true;
      }
    }
    std::erase_if(of_processes_, [&](const auto& each) { return !there.contains(each.first); });
    known_ = std::move(there);
    if (is_any_new) attribute_news(news);
  }

  void attribute_news(const Snapshot& news) {
    Ledger ledger;
    for (const auto& run : runs_) {
      if (has_begun(*run)) ledger.tickets.push_back(run->ticket);
    }
    store::MemoryStore store(std::make_shared<store::MemoryBooks>());
    for (const auto& [pid, lease] :
         leasing::attribute(news, ledger, store, leasing::system_processes()).leases)
      add_process(pid, lease);
  }

  // A process in a lease inside of another belongs to both.
  void add_process(std::uint32_t pid, TicketId lease) {
    of_processes_.emplace(pid, lease);
    const auto inner = find_run(lease);
    if (inner == runs_.end()) return;
    for (const TicketId around : leases_in((*inner)->lease.path)) {
      if (around != lease && find_run(around) != runs_.end()) of_processes_.emplace(pid, around);
    }
  }

  command::Environment& environment_;
  source::SourceKind source_;
  std::vector<std::unique_ptr<SampledRun>> runs_;
  bool had_run_ = false;
  SamplerClock::time_point last_look_{};
  SamplerClock::time_point next_look_{};
  sys::Descriptor agent_;  ///< a connection over which the agent is to tell its next look
  std::string told_;       ///< of that look, as far as it has come
  SamplerClock::time_point waits_for_agent_until_{};
  std::set<std::uint32_t> known_;  ///< processes that were on a device at the last look
  std::multimap<std::uint32_t, TicketId> of_processes_;
};

class SamplerCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.add(command::source_option(source_)); }
  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    int listens = 0;
    socklen_t length = sizeof listens;
    if (::getsockopt(STDIN_FILENO, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0)
      return fail(ErrorCode::usage, "__sample is for Berth itself: it looks at the GPUs of runs");
    // Nobody shall have to wait for this process to unmount a disk.
    std::ignore = ::chdir("/");
    sys::raise_limits();
    Sampler(environment, source_).go();
    return command::Output{};
  }

 private:
  source::SourceKind source_ = source::SourceKind::kAutomatic;
};

}  // namespace

sys::Descriptor connect_to_sampler(const std::string& path, source::SourceKind source) {
  const auto name = sys::socket_name("sampler", ::geteuid(), path, source::to_text(source));
  if (!name) return {};
  if (sys::Descriptor connection = sys::connect_to(*name)) return connection;
  start_sampler(*name, source);
  return sys::connect_to(*name);
}

BERTH_COMMAND(make_sampler, SamplerCommand);

}  // namespace berth::receipts
