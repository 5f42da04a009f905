#include "berth/supervise/take_lease.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "berth/answers/answers.h"
#include "berth/base/record.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/device/device.h"
#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/lease/original_locks.h"
#include "berth/lease/session.h"
#include "berth/receipts/receipts_on_disk.h"
#include "berth/request/request.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/view/refusal.h"

namespace berth::supervise {

Result<std::optional<std::int64_t>> wait_that_is_said(const LeaseOptions& options,
                                                      std::optional<std::int64_t> otherwise) {
  if (options.in_background) return std::nullopt;
  if (options.no_wait) return 0;
  if (options.wait_s) return options.wait_s;
  const std::string_view set = sys::variable("BERTH_WAIT");
  if (set.empty()) return otherwise;
  if (set == "forever") return std::nullopt;
  const auto seconds = delay_from_text(set);
  if (!seconds) return std::unexpected(context(seconds.error(), "BERTH_WAIT (a time, 0 or forever)"));
  return *seconds;
}

command::Option time_option(std::string_view help, Request& request) {
  command::Option option = lease_option("time", request);
  option.help = help;
  return option;
}

command::Option lease_option(std::string_view name, Request& request) {
  return command::field_option(*find_request_field(name), kLeaseGroup, request);
}

command::Option note_option(std::string_view group, std::string& note) {
  return {group, "note", "TEXT", "shown to others beside the lease", command::text_into(note)};
}

void add_lease_options(command::Syntax& syntax, LeaseOptions& options) {
  add_request_options(syntax, options);
  syntax.flag(kLeaseGroup, "no-wait", "do not wait: exit with status 75 and the reasons", options.no_wait);
  syntax.option(kLeaseGroup, "wait", "TIME", "wait at most this long (30m), then exit with status 124",
                command::delay_into(options.wait_s));
  add_fields(syntax, RequestPart::lease, kLeaseGroup, options);
  syntax.add(note_option(kLeaseGroup, options.note));
}

Result<void> settle(LeaseOptions& options) {
  if (options.no_wait && options.wait_s)
    return fail(ErrorCode::usage, "--wait and --no-wait exclude each other");
  return command::settle(options);
}

JobMask lease_environment(const leasing::Domain& domain, const leasing::HeldLease& lease,
                          const command::RequestOptions& asked) {
  const Ticket& ticket = lease.ticket();
  const Facts& facts = lease.world().facts;
  JobMask mask = job_mask(ticket.devices, facts.snapshot, asked.uuids || facts.policy.mask == MaskForm::uuid);
  bound_job(mask, ticket.devices.size(), asked);
  mask.variables.emplace_back("BERTH_LEASE", domain.path_of(ticket.id));
  return mask;
}

// `berth __until-used LEASE` has a lock on its standard input, and keeps it until the driver lists
// a process of the lease on each of its devices. Then those who look at processes instead of leases
// can see them.

namespace {

using namespace std::chrono_literals;

constexpr auto kFirstLockPause = 50ms;
constexpr auto kLongestLockPause = 500ms;
// The child forks, and ends.
constexpr auto kLeavesWithin = 5s;

bool is_used(const Device& device, const TicketId lease, const Facts& facts) {
  if (!device.processes) return false;
  return std::ranges::any_of(*device.processes, [&](const Process& process) {
    const auto [first, last] = facts.process_leases.equal_range(process.pid);
    return std::any_of(first, last, [&](const auto& known) { return known.second == lease; });
  });
}

/// The lease is over, or a process of it is on each of its devices.
bool is_settled(const leasing::World& world, TicketId id) {
  const Ticket* lease = find_ticket(world.ledger, id, TicketPhase::granted);
  if (lease == nullptr) return true;
  return std::ranges::all_of(lease->devices, [&](const std::string& uuid) {
    const Device* device = find_device(world.facts.snapshot, uuid);
    return device == nullptr || is_used(*device, id, world.facts);
  });
}

class UntilUsed : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "LEASE"; }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    const auto lease = words.empty() ? std::nullopt : ticket_id_from_text(words.front());
    if (!lease) return fail(ErrorCode::usage, "__until-used is for Berth itself: it keeps a lock");
    // The parent of this process does not know of a child of ours, and may wait for any child.
    const pid_t child = ::fork();
    if (child < 0) return sys::fail_errno("making a process that keeps a lock");
    if (child > 0) ::_exit(0);
    environment.start_probe(true);
    auto kept = keep(environment, *lease);
    // The holder of the lease still has a copy, to end it with the lease.
    sys::unlock_bytes(STDIN_FILENO, 0, sys::kToTheEnd);
    return kept;
  }

 private:
  static Result<command::Output> keep(command::Environment& environment, TicketId lease) {
    BERTH_LET(const auto session,
              leasing::Session::open(environment.access(source::SourceKind::kAutomatic), MaskUse::ignore));
    const auto end = std::chrono::steady_clock::now() + leasing::kUntilUsedAtMost;
    std::chrono::milliseconds pause = kFirstLockPause;
    while (std::chrono::steady_clock::now() < end) {
      const auto world = session.look(Request{});
      if (world && is_settled(*world, lease)) break;
      std::this_thread::sleep_for(pause);
      pause = std::min<std::chrono::milliseconds>(kLongestLockPause, pause * 3 / 2);
    }
    return command::Output{};
  }
};

}  // namespace

void keep_locks_until_used(const leasing::HeldLease& lease) {
  const auto program = command::own_path();
  for (const int lock : lease.until_used()) {
    if (!program) return;
    auto child = sys::Child::spawn(
        {.program = *program, .arguments = {"__until-used", to_text(lease.ticket().id)}, .input = lock});
    if (child) child->wait(kLeavesWithin);
  }
}

BERTH_COMMAND(make_until_used, UntilUsed);

// If a job in the background drew its line, it would hide what the user types. Several such jobs
// would draw over each other.
bool may_draw() {
  return sys::is_in_foreground_of(STDERR_FILENO);
}

namespace {

// An inherited mask is easily forgotten, and then the wait is for a GPU that nobody asked for.
std::string mask_in_words(const Snapshot& snapshot) {
  std::string text;
  for (const Mask& mask : resolve_masks(leasing::inherited_masks(), snapshot)) {
    if (mask.uuids.size() >= snapshot.devices.size()) continue;
    const std::string name(vendor_named(mask.vendor).mask_variable);
    text += fmt::format(
        "berth: {0}={1} is set, so the job waits for no other GPU; to wait for any: `unset {0}` or --mask "
        "ignore\n",
        name, printable(mask.text));
  }
  return text;
}

}  // namespace

WaitReport::WaitReport(std::string request_words, bool obeys_mask, bool enters_queue)
    : request_words_(std::move(request_words)),
      obeys_mask_(obeys_mask),
      terminal_(::isatty(STDERR_FILENO) == 1),
      enters_queue_(enters_queue) {}

void WaitReport::show(const Standing& standing, const Snapshot& snapshot) {
  const view::Style style = command::Environment::style_of(STDERR_FILENO);
  if (!shown_)
    shown_ = !enters_queue_ ||
             command::mention(fmt::format(
                 "berth: waiting for {}; Ctrl-C leaves the queue, --no-wait does not enter it\n{}",
                 request_words_, obeys_mask_ ? mask_in_words(snapshot) : ""));
  Standing told = view::told(standing, snapshot, style);
  const std::string line = in_one_line(told);
  if (terminal_) {
    if (!may_draw()) return;
    command::mention(fmt::format("{}{}", view::kClearLine, view::cut(line, style.width - 1)));
    return;
  }
  view::Style timeless = style;
  timeless.now_s = 0;
  told = view::told(std::move(told), snapshot, timeless);
  told.waited = {};
  if (std::string now = in_one_line(told); now != last_ && command::mention(fmt::format("berth: {}\n", line)))
    last_ = std::move(now);
}

void WaitReport::end() {
  if (shown_ && terminal_ && may_draw()) command::mention(view::kClearLine);
}

Result<leasing::HeldLease> take_lease(const leasing::Session& session, const LeaseOptions& options,
                                      leasing::TicketWords words) {
  BERTH_LET(const auto wait_s, wait_that_is_said(options, session.policy().default_wait_s));
  const leasing::Domain& domain = session.domain();
  // Inside a lease the mask is the lease's.
  WaitReport report(words.request,
                    options.mask == MaskUse::inherit && !domain.masks.empty() && !domain.within, wait_s != 0);
  Patience patience;
  patience.wait = wait_s != 0;
  if (wait_s) patience.limit = std::chrono::seconds(*wait_s);
  patience.is_requeued = options.is_requeued;
  patience.was_accepted = options.was_accepted;
  leasing::OnWait on_wait = options.on_wait;
  if (!options.in_background && !on_wait.call) {
    on_wait.call = [&report](const Standing& standing, const Snapshot& snapshot) {
      report.show(standing, snapshot);
    };
    on_wait.at_each_tick = report.is_live();
  }
  words.earlier_runs = receipts::earlier_runs_of(words.command);
  auto answer = session.acquire(options, words, patience, on_wait);
  report.end();
  if (!answer) return std::unexpected(answer.error());
  if (const auto* refusal = std::get_if<leasing::ExplainedRefusal>(&*answer))
    return std::unexpected(answers::in_words(*refusal, command::Environment::style_of(STDERR_FILENO)));
  auto lease = std::get<leasing::HeldLease>(std::move(*answer));
  keep_locks_until_used(lease);
  return lease;
}

}  // namespace berth::supervise
