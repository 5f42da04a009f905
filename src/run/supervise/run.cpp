#include "berth/supervise/run.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/doctor/doctor_cuda.h"
#include "berth/receipts/make_receipt.h"
#include "berth/receipts/receipts_on_disk.h"
#include "berth/request/request.h"
#include "berth/slurm/sbatch_options.h"
#include "berth/slurm/srun.h"
#include "berth/supervise/leased_command.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/view/refusal.h"

namespace berth::supervise {
namespace {

// "FOO=1", which a shell would take for a variable.
bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || (word[0] >= '0' && word[0] <= '9')) return false;
  return std::ranges::all_of(word.substr(0, equals), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

struct FileHere {
  bool is_executable = false;
  std::string start;
};

// Any file may be typed in place of a command: a FIFO, /dev/zero, a hundred gigabytes. nullopt: it
// is no regular file, or cannot be read.
std::optional<FileHere> file_here(const std::string& name) {
  constexpr std::size_t kEnough = 1U << 14U;
  struct stat status{};
  if (::stat(name.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const sys::Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return std::nullopt;
  return FileHere{::access(name.c_str(), X_OK) == 0, sys::read_start(file.get(), kEnough).value_or("")};
}

// The kernel then looks for an interpreter whose name ends in a carriage return.
bool is_script_with_crlf(const std::string& path) {
  const auto file = file_here(path);
  if (!file || !file->start.starts_with("#!")) return false;
  const std::size_t end = file->start.find('\n');
  return end != std::string::npos && file->start[end - 1] == '\r';
}

// The program that its first line names, else what its name suggests. "": it is no script.
std::string interpreter_of(std::string_view name, std::string_view text) {
  const std::string_view line = trimmed(text.substr(0, text.find('\n')));
  if (line.starts_with("#!")) {
    std::string_view program = trimmed(line.substr(2));
    const std::size_t space = program.find(' ');
    const bool by_env = program.substr(0, space).ends_with("/env");
    if (by_env && space != std::string_view::npos) program = trimmed(program.substr(space));
    program = program.substr(0, program.find(' '));
    return printable(program.substr(program.rfind('/') + 1));
  }
  if (name.ends_with(".py")) return "python3";
  return name.ends_with(".sh") || name.ends_with(".bash") ? "bash" : "";
}

std::string hint_of_file(const std::vector<std::string>& words, std::string_view verb) {
  const std::string& name = words.front();
  const auto file = file_here(name);
  if (!file) return "";
  const std::string typed = printable(fmt::format("{}", fmt::join(words, " ")));
  const std::string told = printable(name);
  if (file->is_executable) {
    if (name.find('/') != std::string::npos) return "";
    return fmt::format("; {} is here: berth {} -- ./{}", told, verb, typed);
  }
  const std::string interpreter = interpreter_of(name, file->start);
  if (interpreter.empty()) return "";
  if (file->start.find(fmt::format("\n{}", kSlurmScriptMark)) != std::string::npos)
    return fmt::format("; {} is here and has lines for sbatch: berth sbatch {}", told, typed);
  return fmt::format("; {} is here but is not executable{}: berth {} -- {} {}", told,
                     verb == "submit" ? " and has no #BERTH line" : "", verb, interpreter, typed);
}

// Debian and Ubuntu have no "python" of their own.
std::string hint_of_python(const std::vector<std::string>& words, std::string_view verb) {
  if (words.front() != "python" || sys::cannot_start({"python3"})) return "";
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  return fmt::format("; there is python3: berth {} -- python3 {}", verb,
                     printable(fmt::format("{}", fmt::join(rest, " "))));
}

}  // namespace

std::string command_hint(const std::vector<std::string>& words, std::string_view verb) {
  const std::string& first = words.front();
  if (is_assignment(first)) {
    return fmt::format("; to set a variable for the command: berth {} -- env {}", verb,
                       fmt::join(words, " "));
  }
  if (first.find('/') != std::string::npos && is_script_with_crlf(first))
    return fmt::format("; its lines end as Windows has them: sed -i 's/\\r$//' {}", first);
  if (first.find_first_of(" \t\n|&;<>()$`*") != std::string::npos)
    return fmt::format("; a line for the shell is written so: berth {} -- sh -c {}", verb,
                       in_shell_quotes(first));
  if (const auto count = number_from_text<unsigned>(first))
    return fmt::format("; for {}: berth {} -n {} -- COMMAND", counted(*count, "GPU"), verb, *count);
  const std::string hint = hint_of_file(words, verb);
  return hint.empty() ? hint_of_python(words, verb) : hint;
}

namespace {

Result<void> check_run(const RunOptions& options, const command::FarOptions& far) {
  if (far.hosts.anywhere || !far.hosts.hosts.empty() || !far.near.empty())
    return fail(ErrorCode::usage,
                "--on slurm excludes --anywhere, --hosts and --near: Slurm has nodes of its own. --host and "
                "--not-host name them");
  if (options.requeue || options.exec)
    return fail(ErrorCode::usage, "--on slurm excludes --requeue and --exec: srun takes the place of berth");
  const auto has_word = [](const std::string& word) {
    return word.contains("{ids}") || word.contains("{uuids}");
  };
  if (std::ranges::any_of(options.command, has_word))
    return fail(ErrorCode::usage,
                "which GPUs it gets is known on the node only: let COMMAND read CUDA_VISIBLE_DEVICES instead "
                "of {ids} and {uuids}");
  return {};
}

}  // namespace

Result<command::Output> run_on_slurm(command::Environment& environment, const RunOptions& options,
                                     const command::FarOptions& far) {
  BERTH_DO(check_run(options, far));
  BERTH_LET(const auto wait_s, wait_that_is_said(options, std::nullopt));
  const bool on_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  BERTH_LET(auto words, srun_options({options, wait_s, options.note, far.hosts.only, far.hosts.without,
                                      far.folder, far.passed_variables, on_terminal}));
  words.insert(words.begin(), "srun");
  if (options.quiet) words.emplace_back("--quiet");
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  environment.end_probe();
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  if (errno == ENOENT)
    return fail(ErrorCode::failure,
                "there is no srun on PATH: --on slurm is for machines on which Slurm takes jobs");
  return sys::fail_errno("starting srun");
}

std::string in_words(const ReleaseCall& call) {
  return fmt::format("{}{}{}", sys::user_name(call.uid), call.because.empty() ? "" : ": ",
                     printable(call.because));
}

std::optional<std::string> who_released(const ReleaseCall& call, const std::optional<sys::Sender>& sender) {
  // If a holder has not obeyed an older call, that call is still in its ticket.
  if (!sender || call.pid == 0 || !std::cmp_equal(call.pid, sender->pid)) return std::nullopt;
  return in_words(call);
}

// Lease, run, end as the command ended.

namespace {

std::string as_one_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

class Run {
 public:
  Run(command::Environment& environment, const RunOptions& options)
      : environment_(environment), options_(options), asked_(options) {}

  Result<int> go() {
    // A queue is a bad place to learn of a misspelt word, or of a limit.
    if (const auto missing = sys::cannot_start(options_.command))
      return not_started(*missing).process.exit_status;
    // A descriptor for each device, and the ticket's.
    if (const auto short_of = sys::cannot_inherit(options_.count + 1 + options_.hooks.inherited.size()))
      return not_started(*short_of).process.exit_status;
    auto settled = receipts::settle_memory(asked_, as_one_line(options_.command));
    static_cast<Request&>(asked_) = std::move(settled.request);
    if (!settled.told.empty() && tells()) command::print_message(settled.told);
    BERTH_LET(const auto session, open_session(environment_, asked_));
    BERTH_LET(sampling_, receipts::sampling_times(options_.clean));
    leasing::TicketWords words{as_one_line(options_.command), options_.note, view::request_in_words(asked_)};
    words.origin = options_.origin;
    if (!options_.exec) words.limit_holds = LimitHolds::yes;
    for (;;) {
      BERTH_LET(const auto end, run_once(session, words));
      if (again(end, {.requeue = options_.requeue}) == Again::no) {
        if (end.process.signal != 0) sys::end_like(end.process);
        return end.process.exit_status;
      }
      is_requeued_ = true;
      command::print_message("the job stands in line again, and starts from its beginning (--requeue)");
    }
  }

 private:
  Result<RunEnd> run_once(const leasing::Session& session, const leasing::TicketWords& words) {
    LeaseOptions request = asked_;
    request.is_requeued = is_requeued_;
    request.on_wait.try_device = [](const Device& device) { return starts_on(device); };
    // It outlives the lease.
    std::optional<sys::HeldTermination> held;
    BERTH_LET(auto lease, take_lease(session, request, words));
    // A SIGTERM before the command begins would end this process while it holds the lease, and the
    // ticket would stay until somebody looks. Ctrl-C is not held back: the terminal sends it once,
    // and the command is not there yet.
    held.emplace();
    if (options_.hooks.instead) instead_ = options_.hooks.instead();
    if (instead_) lease.is_for(*session.domain().store, as_one_line(instead_->command), instead_->note);
    if (options_.hooks.before_start) BERTH_DO(options_.hooks.before_start(lease));
    short_name_ = short_name(lease.world().ledger, lease.ticket().id);
    const sys::JobCommand command = prepare(session.domain(), lease);
    if (options_.exec) {
      held.reset();
      return not_started(sys::exec_job(command));
    }
    const auto end =
        run_in_lease({environment_, session, options_, sampling_, short_name_}, command, lease, *held);
    return end ? *end : not_started(end.error());
  }

  // It tells why not.
  static bool starts_on(const Device& device) {
    const std::string trouble = doctor::why_cuda_fails_on(device, command::own_environment());
    if (trouble.empty()) return true;
    command::print_message(fmt::format(
        "GPU {} is given back, and passed over for a time: {}; the request goes on", label(device), trouble));
    return false;
  }

  bool tells() const { return options_.verbose || (!options_.quiet && ::isatty(STDERR_FILENO) == 1); }

  sys::JobCommand prepare(const leasing::Domain& domain, const leasing::HeldLease& lease) const {
    for (const std::string& note : leasing::notes_on(lease)) command::print_message(note);
    sys::JobCommand command;
    command.words = fill_in(lease);
    JobMask mask = lease_environment(domain, lease, asked_);
    command.environment = std::move(mask.variables);
    command.unset = std::move(mask.unset);
    tell_what_it_has(command, lease);
    command.inherited = lease.descriptors();
    const auto give = [&command](const auto& from) {
      command.inherited.insert(command.inherited.end(), from.inherited.begin(), from.inherited.end());
      command.limits = from.limits;
      command.environment.insert(command.environment.end(), from.environment.begin(), from.environment.end());
    };
    instead_ ? give(*instead_) : give(options_.hooks);
    command.terminal = options_.hooks.terminal;
    return command;
  }

  // Some programs are told their devices on the command line.
  std::vector<std::string> fill_in(const leasing::HeldLease& lease) const {
    const std::vector<std::string>& uuids = lease.ticket().devices;
    const Snapshot& snapshot = lease.world().facts.snapshot;
    std::vector<std::string> words = instead_ ? instead_->command : options_.command;
    for (std::string& word : words) {
      replace_all(word, "{ids}", job_mask(uuids, snapshot).visible);
      replace_all(word, "{uuids}", fmt::format("{}", fmt::join(uuids, ",")));
    }
    return words;
  }

  void tell_what_it_has(sys::JobCommand& command, const leasing::HeldLease& lease) const {
    const std::string labels = lease.labels();
    const std::string& name = short_name_;
    if (options_.shell) {
      command.environment.emplace_back("BERTH_PROMPT", fmt::format("(GPU {}) ", labels));
      command::print_message(fmt::format("this shell has GPU {} until it ends{} (lease {})", labels,
                                         at_the_latest(lease), name));
    } else if (tells()) {
      command::print_message(fmt::format("GPU {} (lease {})", labels, name));
    }
  }

  // ", at 21:43 at the latest".
  static std::string at_the_latest(const leasing::HeldLease& lease) {
    const auto end_s = said_end_at_s(lease.ticket(), lease.world().facts.booted_at_s);
    return end_s ? fmt::format(", at {} at the latest",
                               view::clock_time(*end_s, command::Environment::style_of(STDERR_FILENO)))
                 : std::string();
  }

  RunEnd not_started(const sys::NotStarted& failure) const {
    const RunEnd end{.process = {.exit_status = failure.exit_status}};
    command::print_message(failure.message + command_hint(options_.command, "run"));
    if (options_.hooks.after_end) options_.hooks.after_end(end, std::nullopt);
    if (options_.hooks.at_last) options_.hooks.at_last();
    return end;
  }

  command::Environment& environment_;
  const RunOptions& options_;
  LeaseOptions asked_;      ///< of the options, with what is settled by earlier runs
  std::string short_name_;  ///< of the lease
  std::optional<RunInstead> instead_;
  bool is_requeued_ = false;  ///< it has run, and has given way
  std::optional<receipts::SamplingTimes> sampling_;
};

}  // namespace

std::string users_shell() {
  if (const std::string_view named = sys::variable("SHELL"); !named.empty()) return std::string(named);
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr && *user->pw_shell != '\0' ? user->pw_shell : "/bin/sh";
}

Result<int> run_leased(command::Environment& environment, const RunOptions& options) {
  return Run(environment, options).go();
}

}  // namespace berth::supervise
