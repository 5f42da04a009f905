// Lease, run, end as the command ended. The parent stays so that it knows all that the command leaves behind.

#include "berth/cli/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "berth/cli/choice.h"
#include "berth/cli/environment.h"
#include "berth/cli/wait_report.h"
#include "berth/core/units.h"
#include "berth/lease/place.h"
#include "berth/render/text.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process_identity.h"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

// Time for helpers of a job that has just ended to end too.
constexpr auto kGrace = 5s;
// How often the driver is asked whether a process that was left behind still uses the device.
constexpr auto kRecheck = 30s;

void say(const std::string& sentence) {
  const std::string line = fmt::format("berth: {}\n", sentence);
  // A reader that has gone away is no reason to end a job.
  [[maybe_unused]] const auto written = write_all(STDERR_FILENO, line);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

class Run {
 public:
  Run(const leasing::SourceAccess& source, const RunOptions& options) : source_(source), options_(options) {}

  Result<int> go() {
    // A queue is a bad place to learn of a misspelt word.
    if (const auto missing = sys::cannot_start(options_.command)) return not_started(*missing);
    auto place = leasing::find_place(say);
    if (!place) return std::unexpected(place.error());
    for (const std::string& warning : place->warnings) say(warning);
    auto lease = take(*place);
    if (!lease) return std::unexpected(lease.error());
    const sys::JobCommand command = prepare(*place, *lease);
    return options_.exec ? replace_self(command) : stay(command, *lease);
  }

 private:
  Result<leasing::HeldLease> take(leasing::Place& place) {
    leasing::LookOptions look = options_.look;
    look.within = place.within;
    if (!place.believe_mask) look.mask.reset();
    const leasing::TicketWords words{joined(options_.command), options_.note, options_.request_words};
    WaitReport report(options_.request_words);
    leasing::Patience patience;
    patience.wait = options_.wait_s != 0;
    if (options_.wait_s) patience.limit = std::chrono::seconds(*options_.wait_s);
    patience.on_wait = [&report](const leasing::Waiting& waiting) { report.show(waiting); };
    auto acquired = leasing::acquire_in_turn(source_, *place.store, options_.request, look, words, patience);
    report.end();
    if (!acquired) return std::unexpected(acquired.error());
    if (auto* refusal = std::get_if<leasing::Refused>(&*acquired)) return std::unexpected(no_lease(*refusal));
    return std::get<leasing::HeldLease>(std::move(*acquired));
  }

  Error no_lease(const leasing::Refused& refusal) const {
    Error error = refused(options_.request, refusal.verdicts, refusal.world.facts);
    if (!refusal.waited || error.code != ErrorCode::not_now) return error;
    return {ErrorCode::timed_out,
            fmt::format("waited {} in vain; {}", duration_for_people(*options_.wait_s), error.message)};
  }

  sys::JobCommand prepare(const leasing::Place& place, const leasing::HeldLease& lease) const {
    for (const std::string& note : lease.notes()) say(note);
    const Choice choice{lease.ticket().devices, {}};
    const auto devices = lease.devices();
    const auto instances =
        std::ranges::count_if(devices, [](const Device* device) { return device->mig.has_value(); });
    if (instances > 1)
      say(fmt::format("CUDA shows a process only the first of these {} MIG instances", instances));
    sys::JobCommand command;
    command.words = options_.command;
    command.environment = {
        {"CUDA_VISIBLE_DEVICES", visible_devices(choice, lease.world().facts.snapshot, options_.uuids)},
        {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
        {"BERTH_LEASE", place.path_of(lease.ticket().id)},
    };
    command.inherited = lease.descriptors();
    return command;
  }

  static int not_started(const sys::NotStarted& failure) {
    say(failure.message);
    return failure.exit_status;
  }

  static int replace_self(const sys::JobCommand& command) { return not_started(sys::exec_job(command)); }

  Result<int> stay(const sys::JobCommand& command, leasing::HeldLease& lease) {
    auto job = sys::JobProcess::start(command);
    if (!job) return not_started(job.error());
    const sys::JobEnding ending = job->wait();
    if (wait_for_leftovers(*job, lease)) lease.release();
    if (ending.signal != 0) sys::end_like(ending);
    return ending.exit_status;
  }

  // True: the lease is to end. False: what is left behind goes on holding it.
  bool wait_for_leftovers(sys::JobProcess& job, const leasing::HeldLease& lease) {
    std::chrono::milliseconds patience = kGrace;
    bool told = false;
    while (sys::JobProcess::has_leftovers()) {
      const auto event = job.wait_for_leftovers(patience);
      if (event == sys::JobProcess::Event::asked_to_end) return false;
      if (event == sys::JobProcess::Event::child_ended) continue;
      const std::vector<pid_t> left = sys::process_descendants(::getpid());
      const bool keeps = options_.keep || uses_device(left, lease);
      if (!std::exchange(told, true) || !keeps) say(about(left, keeps));
      if (!keeps) return true;
      patience = kRecheck;
    }
    return true;
  }

  // Whether one of them computes on a device of the lease. Where that cannot be known, it does.
  bool uses_device(const std::vector<pid_t>& pids, const leasing::HeldLease& lease) const {
    auto source = source_.open();
    const auto snapshot = source ? (*source)->read(ReadingKind::processes) : std::unexpected(source.error());
    source_.close();
    if (!snapshot) return true;
    return std::ranges::any_of(lease.ticket().devices, [&](const std::string& uuid) {
      const Device* device = find_device(*snapshot, uuid);
      if (device == nullptr || !device->processes) return true;
      return std::ranges::any_of(*device->processes, [&](const Process& process) {
        return std::ranges::find(pids, static_cast<pid_t>(process.pid)) != pids.end();
      });
    });
  }

  std::string about(const std::vector<pid_t>& left, bool keeps) const {
    std::string names;
    for (const pid_t pid : left) {
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", pid,
                           render::printable(sys::process_command(pid)));
    }
    const char* outcome = "none uses the device, so the lease ends now (--keep would keep it)";
    if (keeps)
      outcome = options_.keep ? "the lease lasts until they end (--keep)"
                              : "the device is in use, so the lease lasts until they end";
    return fmt::format("the command has ended and left behind {}; {}", names, outcome);
  }

  const leasing::SourceAccess& source_;
  const RunOptions& options_;
};

}  // namespace

Result<int> run_leased(const leasing::SourceAccess& source, const RunOptions& options) {
  return Run(source, options).go();
}

}  // namespace berth::cli
