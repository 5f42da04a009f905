// Lease, run, end as the command ended. The parent stays so that it knows all that the command leaves behind.

#include "berth/cli/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "berth/cli/choice.h"
#include "berth/cli/conduct_check.h"
#include "berth/cli/question.h"
#include "berth/render/explain.h"
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

std::string as_one_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += by.size())
    text.replace(at, from.size(), by);
}

class Run {
 public:
  Run(Environment& environment, const RunOptions& options) : environment_(environment), options_(options) {}

  Result<int> go() {
    // A queue is a bad place to learn of a misspelt word.
    if (const auto missing = sys::cannot_start(options_.command)) return not_started(*missing);
    BERTH_LET(const auto session, open_session(environment_, options_.lease.request));
    const leasing::TicketWords words{as_one_line(options_.command), options_.lease.note,
                                     render::request_in_words(options_.lease.request.request)};
    BERTH_LET(auto lease, take_lease(session, options_.lease, words));
    const sys::JobCommand command = prepare(session.place(), lease);
    return options_.exec ? replace_self(command) : stay(command, lease);
  }

 private:
  sys::JobCommand prepare(const leasing::Place& place, const leasing::HeldLease& lease) const {
    for (const std::string& note : leasing::notes_on(lease)) say(render::printable(note));
    const auto devices = lease.devices();
    const auto instances =
        std::ranges::count_if(devices, [](const Device* device) { return device->mig.has_value(); });
    if (instances > 1)
      say(fmt::format("CUDA shows a process only the first of these {} MIG instances", instances));
    sys::JobCommand command;
    command.words = fill_in(lease);
    command.environment = lease_environment(place, lease, options_.lease.request.uuids);
    if (options_.shell) greet(command, lease);
    command.inherited = lease.descriptors();
    return command;
  }

  // Programs that are told their devices on the command line.
  std::vector<std::string> fill_in(const leasing::HeldLease& lease) const {
    const Choice choice{lease.ticket().devices, {}};
    const Snapshot& snapshot = lease.world().facts.snapshot;
    std::vector<std::string> words = options_.command;
    for (std::string& word : words) {
      replace_all(word, "{ids}", visible_devices(choice, snapshot, false));
      replace_all(word, "{uuids}", visible_devices(choice, snapshot, true));
    }
    return words;
  }

  static void greet(sys::JobCommand& command, const leasing::HeldLease& lease) {
    std::string labels;
    for (const Device* device : lease.devices()) labels += (labels.empty() ? "" : ",") + label(*device);
    command.environment.emplace_back("BERTH_PROMPT", fmt::format("(GPU {}) ", labels));
    say(fmt::format("this shell has GPU {} until it ends (lease {})", labels, to_text(lease.ticket().id)));
  }

  static int not_started(const sys::NotStarted& failure) {
    say(failure.message);
    return failure.exit_status;
  }

  static int replace_self(const sys::JobCommand& command) { return not_started(sys::exec_job(command)); }

  Result<int> stay(const sys::JobCommand& command, leasing::HeldLease& lease) {
    auto job = sys::JobProcess::start(command);
    if (!job) return not_started(job.error());
    lease.end_watch();
    ConductCheck check(lease.ticket().id, options_.lease.request.source, options_.first_look,
                       !options_.shell);
    std::optional<sys::JobEnding> ending;
    while (!(ending = job->wait(check.next()))) {
      if (const auto sentence = check.go_on()) say(*sentence);
    }
    check.end();
    if (wait_for_leftovers(*job, lease, check.ended())) lease.release();
    if (ending->signal != 0) sys::end_like(*ending);
    return ending->exit_status;
  }

  // True: the lease is to end. False: what is left behind goes on holding it. `ours`: none of the command's.
  bool wait_for_leftovers(sys::JobProcess& job, const leasing::HeldLease& lease,
                          const std::vector<pid_t>& ours) {
    // A moment, not a span: the orphans of a job that goes on end again and again.
    auto until = std::chrono::steady_clock::now() + kGrace;
    bool told = false;
    while (sys::JobProcess::has_leftovers() && (ours.empty() || !left_behind(ours).empty())) {
      const auto event = job.wait_for_leftovers(until);
      if (event == sys::JobProcess::Event::asked_to_end) return false;
      if (event == sys::JobProcess::Event::child_ended) continue;
      const std::vector<pid_t> left = left_behind(ours);
      const bool keeps = options_.keep || uses_device(left, lease);
      if (!std::exchange(told, true) || !keeps) say(about(left, keeps));
      if (!keeps) return true;
      until = std::chrono::steady_clock::now() + kRecheck;
    }
    return true;
  }

  static std::vector<pid_t> left_behind(const std::vector<pid_t>& ours) {
    std::vector<pid_t> left = sys::process_descendants(::getpid());
    std::erase_if(left, [&](pid_t pid) { return std::ranges::find(ours, pid) != ours.end(); });
    return left;
  }

  // Whether one of them computes on a device of the lease. Where that cannot be known, it does.
  bool uses_device(const std::vector<pid_t>& pids, const leasing::HeldLease& lease) const {
    auto source = environment_.source(options_.lease.request.source);
    const auto snapshot = source ? (*source)->read(ReadingKind::processes) : std::unexpected(source.error());
    environment_.end_probe();
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

  Environment& environment_;
  const RunOptions& options_;
};

}  // namespace

Result<int> run_leased(Environment& environment, const RunOptions& options) {
  return Run(environment, options).go();
}

}  // namespace berth::cli
