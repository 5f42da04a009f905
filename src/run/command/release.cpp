#include "berth/command/release.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/job/run_end.h"
#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/source/source.h"
#include "berth/sys/clock.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"

namespace berth::command {
namespace {

struct FoundTicket {
  Ticket ticket;
  std::string name;
};

using LookFor = std::function<Result<FoundTicket>(store::LeaseStore& store)>;

/// Where a request would be made now, then in the places around it.
Result<NamedLease> find_from_here(const LookFor& look_for) {
  BERTH_LET(auto domain, find_domain());
  auto found = look_for(*domain.store);
  while (!found && !domain.around.empty()) {
    static_cast<leasing::Level&>(domain) = std::move(domain.around.back());
    domain.around.pop_back();
    found = look_for(*domain.store);
  }
  if (!found) return std::unexpected(found.error());
  return NamedLease{std::move(domain), std::move(found->ticket), std::move(found->name)};
}

Result<Ledger> ledger_of(store::LeaseStore& store) {
  BERTH_LET(auto books, store.look());
  leasing::name_users(books.ledger);
  return std::move(books.ledger);
}

Result<NamedLease> find_ticket_named(std::string_view name, TicketPhase wanted) {
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  return find_from_here([&](store::LeaseStore& store) -> Result<FoundTicket> {
    BERTH_LET(const auto ledger, ledger_of(store));
    BERTH_LET(const auto ticket, ticket_named(ledger, name, wanted));
    return FoundTicket{*ticket, short_name(ledger, ticket->id)};
  });
}

}  // namespace

Result<NamedLease> find_named_lease(const std::vector<std::string>& words) {
  if (words.size() > 1) return fail(ErrorCode::usage, "one lease at a time");
  const std::string_view name =
      words.empty() ? sys::variable("BERTH_LEASE") : std::string_view(words.front());
  if (name.empty()) return fail(ErrorCode::usage, "which lease? `berth list -l` has their ids");
  BERTH_LET(auto found, find_ticket_named(name, TicketPhase::granted));
  if (found.ticket.phase == TicketPhase::waiting)
    return fail(ErrorCode::failure, "{0} waits and holds nothing; berth cancel {0} takes it out of the queue",
                found.name);
  return found;
}

Result<std::optional<NamedLease>> find_lease_of(const UniqueProcess& taker) {
  bool has_looked = false;
  auto found = find_from_here([&](store::LeaseStore& store) -> Result<FoundTicket> {
    BERTH_LET(const auto ledger, ledger_of(store));
    has_looked = true;
    const auto is_its = [&](const Ticket& each) {
      return each.phase == TicketPhase::granted && each.taker == taker;
    };
    const auto lease = std::ranges::find_if(ledger.tickets, is_its);
    if (lease == ledger.tickets.end()) return fail(ErrorCode::failure, "it has no lease");
    return FoundTicket{*lease, short_name(ledger, lease->id)};
  });
  if (found) return *std::move(found);
  if (has_looked) return std::nullopt;
  return std::unexpected(found.error());
}

Result<NamedLease> find_named_request(const std::vector<std::string>& words) {
  if (words.size() != 1)
    return fail(ErrorCode::usage, "which request? one at a time; `berth queue` has their ids");
  BERTH_LET(auto found, find_ticket_named(words.front(), TicketPhase::waiting));
  if (found.ticket.phase == TicketPhase::granted)
    return fail(ErrorCode::failure, "{0} waits no more, it has its GPUs; berth release {0} ends the lease",
                found.name);
  return found;
}

namespace {

// As podman starts it since 3.3 (catatonit), and before that or where catatonit is missing (podman
// itself).
constexpr std::string_view kPause = "catatonit -P";
constexpr std::string_view kPausedPodman = "podman pause";

std::vector<Holder> named(const std::vector<pid_t>& pids) {
  std::vector<Holder> holders;
  for (const pid_t pid : pids)
    holders.push_back({static_cast<std::uint32_t>(pid), sys::process_command(pid)});
  return holders;
}

// A probe that was forked has the command line of its program for a moment, and a probe of an older
// Berth has no name of its own.
bool is_probe(pid_t pid, const std::string& command) {
  return command.find(" __probe ") != std::string::npos || sys::process_name(pid) == source::kProbeName;
}

// Likewise.
bool is_receipt_keeper(pid_t pid, const std::string& command) {
  return command.ends_with(" __lease") || sys::process_name(pid) == kReceiptKeeperName;
}

}  // namespace

bool keeps_namespaces(pid_t pid) {
  return sys::process_command(pid) == kPause || sys::process_name(pid) == kPausedPodman;
}

bool serves_berth(pid_t pid) {
  const std::string command = sys::process_command(pid);
  return command.find(" __jobs /") != std::string::npos || command.find(" __job /") != std::string::npos ||
         command.find(" __notify") != std::string::npos ||
         command.find(" __sample --") != std::string::npos || is_receipt_keeper(pid, command) ||
         is_probe(pid, command);
}

std::vector<pid_t> left_below(pid_t holder) {
  if (sys::process_name(holder) != kLeftBehindName) return {};
  std::vector<pid_t> left = sys::pids_of(sys::ProcessTree().below(holder));
  std::erase_if(left, keeps_namespaces);
  return left;
}

std::map<TicketId, std::vector<Holder>> left_behind(store::LeaseStore& store, const Ledger& ledger) {
  std::map<TicketId, std::vector<pid_t>> found;
  std::map<sys::FileIdentity, TicketId> of_files;
  std::set<sys::FileIdentity> files;
  for (const Ticket& lease : ledger.tickets) {
    if (lease.phase != TicketPhase::granted || lease.kept) continue;
    if (sys::still_runs(lease.taker)) {
      found[lease.id] = left_below(static_cast<pid_t>(lease.taker.pid));
    } else if (const auto file = store.file_of(lease)) {
      of_files[*file] = lease.id;
      files.insert(*file);
    }
  }
  for (const auto& [file, pids] : sys::writers_of(files)) found[of_files[file]] = pids;
  std::map<TicketId, std::vector<Holder>> told;
  for (const auto& [lease, pids] : found) {
    if (!pids.empty()) told[lease] = named(pids);
  }
  return told;
}

// The kernel ends a lease when its last descriptor is closed, so nobody else can end it: its holder
// is asked.

namespace {

using Clock = std::chrono::steady_clock;

// An exit is an event; that a process which lives on has let go is not.
constexpr std::chrono::milliseconds kLookAgain{50};

// Whom to ask: one that took the lease knows what to do with those that it has started.
std::vector<pid_t> to_ask(const Ticket& lease, const std::vector<pid_t>& holders) {
  const auto taker = std::ranges::find(holders, static_cast<pid_t>(lease.taker.pid));
  if (taker != holders.end() && sys::process_stat(lease.taker)) return {*taker};
  std::vector<pid_t> topmost;
  for (const pid_t pid : holders) {
    const auto stat = sys::process_stat(pid);
    if (stat && std::ranges::find(holders, stat->parent) == holders.end()) topmost.push_back(pid);
  }
  return topmost;
}

/// The processes that hold a lease because they have its file open, as far as we may see them,
/// without this process.
struct Holders {
  std::vector<pid_t> own;     ///< that the owner of the lease may signal
  std::vector<pid_t> others;  ///< to which somebody has handed the ticket
};

Holders holders_of(store::LeaseStore& store, const Ticket& lease) {
  const auto file = store.file_of(lease);
  Holders holders;
  for (const pid_t pid : file ? sys::processes_that_can_write(*file) : std::vector<pid_t>{})
    (sys::may_be_signalled_by(lease.uid, pid) ? holders.own : holders.others).push_back(pid);
  return holders;
}

// `berth run` and a keeper say themselves who has asked.
bool is_berth(pid_t pid) {
  return sys::process_name(pid).starts_with("berth");
}

/// The processes that hold a lease, as they are asked to end.
class AskedHolders {
 public:
  AskedHolders(store::LeaseStore& store, const Ticket& lease, std::string_view words)
      : store_(store), lease_(lease), words_(words) {
    const std::vector<pid_t> all = holders_of(store, lease).own;
    heads_ = to_ask(lease, all);
    berth_sees_to_it_ = heads_.size() == 1 && is_berth(heads_.front());
    for (const pid_t pid : all) {
      exits_.push_back(sys::process_exit(pid));
      ready_.push_back({exits_.back().get(), POLLIN, 0});
    }
  }

  void take(const EndEvent& event) {
    std::visit([&](const auto& end) { take(next_step(end, event, now())); }, end_);
  }

  // Until one of them has ended, a moment at most.
  void wait() {
    ::poll(ready_.data(), ready_.size(), static_cast<int>(kLookAgain.count()));
    std::erase_if(ready_, [](const pollfd& exit) { return exit.revents != 0; });
    if (std::ranges::any_of(heads_, lives)) return take(TimePasses{});
    const auto* of_heads = std::get_if<EndOfCommand>(&end_);
    if (of_heads != nullptr) take(after_command(*of_heads, now()));
  }

 private:
  template <class End>
  void take(const EndStep<End>& step) {
    end_ = step.next;
    if (step.action == EndAction::ask_command) ask(heads_);
    if (step.action == EndAction::ask_rest && (!berth_sees_to_it_ || !lives(heads_.front())))
      ask(holders_of(store_, lease_).own);
  }

  static std::chrono::milliseconds now() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(sys::since_boot());
  }

  static bool lives(pid_t pid) {
    const auto stat = sys::process_stat(pid);
    return stat && !stat->ended();
  }

  void ask(const std::vector<pid_t>& pids) {
    for (const pid_t pid : pids) {
      const auto stat = sys::process_stat(pid);
      if (!stat || !asked_.insert(stat->process).second) continue;
      if (!words_.empty() && !is_berth(pid)) sys::write_to_terminal_of(pid, words_);
      const auto is_meant = [&](pid_t found) { return may_ask(found); };
      if (lease_.phase == TicketPhase::waiting)
        sys::ask_to_cancel(pid, is_meant);
      else
        sys::ask_to_end(pid, is_meant);
    }
  }

  bool may_ask(pid_t pid) const {
    const auto file = store_.file_of(lease_);
    return file && sys::may_be_signalled_by(lease_.uid, pid) &&
           sys::process_can_write(pid, *file).value_or(false);
  }

  store::LeaseStore& store_;
  const Ticket& lease_;
  std::string_view words_;
  std::vector<pid_t> heads_;  ///< whom to ask first
  bool berth_sees_to_it_ = false;
  std::variant<EndOfCommand, EndOfRest> end_;  ///< the second once the heads are gone
  std::set<UniqueProcess> asked_;
  std::vector<sys::Descriptor> exits_;
  std::vector<pollfd> ready_;
};

Result<bool> still_held(store::LeaseStore& store, const Ticket& lease) {
  BERTH_LET(const auto books, store.look());
  return std::ranges::any_of(books.ledger.tickets, [&](const Ticket& ticket) {
    return ticket.id == lease.id && ticket.uid == lease.uid;
  });
}

}  // namespace

std::string in_words(const std::vector<pid_t>& pids) {
  std::string text;
  for (const pid_t pid : pids) {
    const std::string command = sys::process_command(pid);
    if (command.empty()) continue;  // it has ended meanwhile
    const auto stat = sys::process_stat(pid);
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", pid, printable(listed_words(command)),
                        stat && stat->stopped() ? ", stopped" : "");
  }
  return text.empty() ? fmt::format("{}", fmt::join(pids, ", ")) : text;
}

namespace {

std::string short_name_in(store::LeaseStore& store, TicketId id) {
  const auto books = store.look();
  return short_name(books ? books->ledger : Ledger{}, id);
}

// "812 (dbus-daemon) of root"
std::string with_owner(pid_t pid) {
  const auto owner = sys::process_owner(pid);
  return fmt::format("{}{}", in_words({pid}), owner ? " of " + sys::user_name(*owner) : "");
}

// `id`: as users know the lease.
Error not_ended(const Ticket& lease, const std::string& id, Holders left) {
  if (left.own.empty() && left.others.empty())
    return {ErrorCode::failure,
            fmt::format("the {} is held by a process that cannot be seen from here; process {} took it", id,
                        lease.taker.pid)};
  std::string others;
  for (const pid_t pid : left.others) others += (others.empty() ? "" : ", ") + with_owner(pid);
  const std::string whose = sys::user_name(lease.uid);
  if (left.own.empty())
    return {
        ErrorCode::timed_out,
        fmt::format("the {} has not ended yet: {} handed it to a process that {} may not signal, and Berth "
                    "sends that process no signal either: {}",
                    id, whose, whose, others)};
  // `berth run` only waits for them.
  if (std::ranges::any_of(left.own, std::not_fn(is_berth))) std::erase_if(left.own, is_berth);
  if (!others.empty())
    others = fmt::format("; it is also held by what {} may not signal, and Berth sends no signal to: {}",
                         whose, others);
  return {ErrorCode::timed_out,
          fmt::format("the {} has not ended yet: it got SIGTERM, and these processes still hold it: {}; "
                      "to end them without asking: {}{}",
                      id, in_words(left.own), kill_line(left.own), others)};
}

}  // namespace

std::string kill_line(const std::vector<pid_t>& pids) {
  return fmt::format("kill -KILL {}", fmt::join(pids, " "));
}

Result<void> ask_to_release(store::LeaseStore& store, const Ticket& lease, std::chrono::milliseconds patience,
                            std::string_view words) {
  const bool waits = lease.phase == TicketPhase::waiting;
  const std::string id = fmt::format("{} {}", waits ? "request" : "lease", short_name_in(store, lease.id));
  if (::geteuid() != 0 && ::geteuid() != lease.uid)
    return fail(ErrorCode::failure, "the {} is of {}: only its owner and root may end it", id,
                sys::user_name(lease.uid));
  AskedHolders holders(store, lease, words);
  holders.take(ReleaseWish{});
  const auto until = Clock::now() + patience;
  for (;;) {
    BERTH_LET(const auto held, still_held(store, lease));
    if (!held) return {};
    if (Clock::now() >= until) break;
    holders.wait();
  }
  const Holders left = holders_of(store, lease);
  // The last of them may have ended in this moment.
  BERTH_LET(const auto held, still_held(store, lease));
  if (!held) return {};
  return std::unexpected(not_ended(lease, id, left));
}

}  // namespace berth::command
