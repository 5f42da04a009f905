// The kernel ends a lease when its last descriptor is closed, so nobody else can end it: its holder is asked.

#include "berth/lease/release.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "berth/core/printable.h"
#include "berth/sys/process_identity.h"
#include "berth/sys/terminal.h"

namespace berth::leasing {
namespace {

using Clock = std::chrono::steady_clock;

// An exit is an event; that a process which lives on has let go is not.
constexpr std::chrono::milliseconds kLookAgain{50};

bool is_holder(const Ticket& lease, pid_t pid) {
  const auto stat = sys::process_stat(pid);
  return std::cmp_equal(lease.pid, pid) && stat && stat->start_ticks == lease.pid_start_ticks;
}

// Whom to ask: one that took the lease knows what to do with those that it has started.
std::vector<pid_t> to_ask(const Ticket& lease, const std::vector<pid_t>& holders) {
  const auto taker = std::ranges::find_if(holders, [&](pid_t pid) { return is_holder(lease, pid); });
  if (taker != holders.end()) return {*taker};
  std::vector<pid_t> topmost;
  for (const pid_t pid : holders) {
    const auto stat = sys::process_stat(pid);
    if (stat && std::ranges::find(holders, stat->parent) == holders.end()) topmost.push_back(pid);
  }
  return topmost;
}

// `berth run` and a keeper say themselves who has asked.
bool is_berth(pid_t pid) {
  return sys::process_name(pid).starts_with("berth");
}

Result<bool> still_held(store::LeaseStore& store, TicketId lease) {
  BERTH_LET(const auto books, store.look());
  return find_ticket(books.ledger, lease) != nullptr;
}

}  // namespace

std::string in_words(const std::vector<pid_t>& pids) {
  std::string text;
  for (const pid_t pid : pids) {
    const auto stat = sys::process_stat(pid);
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", pid, printable(sys::process_command(pid)),
                        stat && stat->stopped() ? ", stopped" : "");
  }
  return text;
}

std::string short_name_in(store::LeaseStore& store, TicketId id) {
  const auto books = store.look();
  return short_name(books ? books->ledger : Ledger{}, id);
}

std::vector<pid_t> holders_of(store::LeaseStore& store, TicketId lease) {
  const auto file = store.file_of(lease);
  return file ? sys::processes_that_can_write(*file) : std::vector<pid_t>{};
}

Result<void> ask_to_release(store::LeaseStore& store, const Ticket& lease, std::chrono::milliseconds patience,
                            std::string_view words) {
  const bool waits = lease.phase == TicketPhase::waiting;
  const std::string id = fmt::format("{} {}", waits ? "request" : "lease", short_name_in(store, lease.id));
  if (::geteuid() != 0 && ::geteuid() != lease.uid)
    return fail(ErrorCode::failure, fmt::format("the {} is of {}: only its owner and root may end it", id,
                                                sys::user_name(lease.uid)));
  const std::vector<pid_t> holders = holders_of(store, lease.id);
  std::vector<sys::Descriptor> exits;
  std::vector<pollfd> ready;
  for (const pid_t pid : holders) {
    exits.push_back(sys::process_exit(pid));
    ready.push_back({exits.back().get(), POLLIN, 0});
  }
  for (const pid_t pid : to_ask(lease, holders)) {
    if (!words.empty() && !is_berth(pid)) sys::write_to_terminal_of(pid, words);
    if (waits)
      sys::ask_to_cancel(pid);
    else
      sys::ask_to_end(pid);
  }
  const auto until = Clock::now() + patience;
  for (;;) {
    BERTH_LET(const auto held, still_held(store, lease.id));
    if (!held) return {};
    if (Clock::now() >= until) break;
    ::poll(ready.data(), ready.size(), static_cast<int>(kLookAgain.count()));
    std::erase_if(ready, [](const pollfd& exit) { return exit.revents != 0; });
  }
  const std::vector<pid_t> left = holders_of(store, lease.id);
  // The last of them may have ended in this moment.
  BERTH_LET(const auto held, still_held(store, lease.id));
  if (!held) return {};
  if (left.empty())
    return fail(ErrorCode::failure,
                fmt::format("the {} is held by a process that cannot be seen from here; process {} took it",
                            id, lease.pid));
  return fail(ErrorCode::timed_out,
              fmt::format("the {} has not ended yet: it got SIGTERM, and these processes still hold it: {}",
                          id, in_words(left)));
}

}  // namespace berth::leasing
