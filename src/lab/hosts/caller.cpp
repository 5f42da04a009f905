// `berth run --anywhere`: in the queue on several hosts at once, through an ssh to each, until one
// of them grants the request and asks whether to start. What is done when, and which host that is,
// is decided in src/lab/hosts/model/caller_step.h. From then on this process passes streams,
// signals and the window.

#include "berth/hosts/caller.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/hosts/channel.h"
#include "berth/hosts/far_command.h"
#include "berth/hosts/model/caller_step.h"
#include "berth/hosts/own_terminal.h"
#include "berth/machines/host.h"
#include "berth/receipts/receipts_on_disk.h"
#include "berth/site/site_file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/view/refusal.h"

namespace berth::hosts {
namespace {

using Clock = std::chrono::steady_clock;

// Of a wait: the host's site decides.
constexpr std::int64_t kNotSaid = -1;

// As the user came here: links in it may lead elsewhere on another host.
Result<std::string> folder_as_called() {
  const std::string named(sys::variable("PWD"));
  struct stat by_name{};
  struct stat here{};
  if (named.starts_with('/') && ::stat(named.c_str(), &by_name) == 0 && ::stat(".", &here) == 0 &&
      by_name.st_dev == here.st_dev && by_name.st_ino == here.st_ino)
    return named;
  auto folder = sys::current_folder();
  if (!folder) return std::unexpected(context(folder.error(), "give the folder with --folder PATH"));
  return folder;
}

/// A host that may start the command.
struct FarHost {
  LabHost as_named;
  std::optional<Channel> channel{};  ///< none: it is not connected
  Snapshot snapshot{};               ///< when it granted
  api::LeaseGranted grant{};         ///< the last
};

std::vector<std::string> names_of(const std::vector<FarHost>& hosts) {
  std::vector<std::string> names;
  for (const FarHost& host : hosts) names.push_back(host.as_named.name);
  return names;
}

/// The lab queue, where the site has one.
struct LabQueueAccess {
  std::string socket;  ///< of the agent that keeps it; "": there is none
  unsigned lane = 0;   ///< of the request
};

class Caller {
 public:
  Caller(const AnywhereRun& options, std::vector<FarHost> hosts, std::string token, LabQueueAccess lab)
      : options_(options),
        request_(options.run),
        hosts_(std::move(hosts)),
        token_(std::move(token)),
        ssh_(ssh_alone()),
        terminal_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1),
        report_(view::request_in_words(request_), names_of(hosts_), options.run.quiet),
        lab_queue_(std::move(lab)) {}

  Result<int> go() {
    BERTH_DO(prepare_question());
    take(caller::begin(
        {request_, names_of(hosts_), !lab_queue_.socket.empty(), !options_.far.near.empty(), wait_}, now()));
    handle_answers();
    while (!ending_) {
      happen(caller::Settled{});
      if (const auto sleep = std::exchange(sleep_, std::nullopt)) listen(sleep->until);
    }
    return *std::move(ending_);
  }

 private:
  Result<void> prepare_question() {
    const supervise::RunOptions& run = options_.run;
    EnvoyAsk ask;
    ask.near = options_.far.near;
    ask.folder = options_.far.folder;
    if (ask.folder.empty()) {
      BERTH_LET(ask.folder, folder_as_called());
    }
    ask.words = run.command;
    ask.shell = run.shell;
    ask.ids = run.uuids ? "uuid" : "";
    if (run.source != source::SourceKind::kAutomatic) ask.source = source::to_text(run.source);
    ask.token = token_;
    ask.origin = origin_of(sys::host_name(), ::getpid());
    ask.end_with_command = run.end_with_command;
    api::LeaseAsk lease = lease_ask_of(run);
    lease.note = run.note;
    BERTH_LET(const auto wait_s, wait_that_is_said(run, kNotSaid));
    ask.patient = !wait_s;
    if (wait_s && wait_s != kNotSaid) lease.wait = std::chrono::seconds(*wait_s);
    if (lease.wait) wait_ = *lease.wait;
    BERTH_LET(lease.variables, passed_environment(options_.far.passed_variables, command::own_environment()));
    for (const auto& [name, value] : run.hooks.environment)
      lease.variables.push_back(fmt::format("{}={}", name, value));
    ask.mode = EnvoyMode::offer;
    question_for_offer_ = encode(ask) + api::encode(lease);
    ask.mode = EnvoyMode::run;
    question_ = encode(ask) + api::encode(lease);
    return {};
  }

  // --- what the step says

  static SteadyTime now() { return Clock::now().time_since_epoch(); }

  void happen(caller::Event what) {
    take(caller::next(std::move(state_), {now(), std::move(what)}));
    handle_answers();
  }

  // The result of a deed counts after all deeds of the same step.
  void handle_answers() {
    while (!answers_.empty() && !ending_) {
      caller::Event answer = std::move(answers_.front());
      answers_.pop_front();
      take(caller::next(std::move(state_), {now(), std::move(answer)}));
    }
  }

  void take(caller::Step step) {
    state_ = std::move(step.state);
    for (caller::Action& action : step.actions) {
      if (ending_) return;
      std::visit([this](auto& what) { perform(std::move(what)); }, action);
    }
  }

  void perform(caller::Connect&& what) {
    FarHost& host = hosts_[what.host];
    auto channel = Channel::open(host.as_named, ssh_, terminal_);
    if (channel)
      host.channel.emplace(*std::move(channel));
    else
      answers_.emplace_back(caller::HostLost{what.host, channel.error()});
  }
  void perform(caller::AskForOffer&& what) { send(what.host, question_for_offer_); }
  void perform(caller::AskToRun&& what) { send(what.host, question_); }
  void perform(caller::SayJoin&& what) { send(what.host, encode(CallerWord::join)); }
  void perform(caller::Disconnect&& what) {
    hosts_[what.host].channel.reset();
    report_.forget(what.host);
  }

  void perform(caller::SayYes&& what) {
    const auto& hook = options_.run.hooks.before_yes;
    if (const auto goes_on = hook ? hook(devices_at(what.host)) : Result<void>{}; !goes_on)
      return (void)answers_.emplace_back(caller::NotSaid{goes_on.error()});
    // From here on a signal is for the command, wherever that is.
    signals_.emplace(terminal_);
    send(what.host, encode(CallerWord::yes));
  }

  // A single entry serves all of these hosts; an earlier entry was for hosts that are all gone.
  void perform(caller::EnterLabQueue&& what) {
    std::vector<std::string> names;
    for (const std::size_t host : what.hosts) names.push_back(name_in_lab(host));
    auto entry = LabQueueEntry::take(lab_queue_.socket, lab_queue_.lane, request_.count, std::move(names));
    if (!entry) return (void)answers_.emplace_back(caller::Dismissed{entry.error()});
    entry_ = *std::move(entry);
    answers_.emplace_back(caller::Entered{});
  }
  void perform(caller::TellJoined&& what) { entry_->joined(name_in_lab(what.host)); }
  void perform(caller::TellLeft&& what) { entry_->left(name_in_lab(what.host)); }
  void perform(caller::TellClosed&& what) { entry_->let_go(name_in_lab(what.host)); }
  void perform(caller::AskToStart&& what) { entry_->ask_to_start(name_in_lab(what.host)); }

  void perform(caller::Tell&& what) {
    if (options_.run.quiet) return;
    report_.end();
    command::print_message(what.sentence);
  }
  void perform(caller::TellOut&& what) { report_.drop(what.host, std::move(what.why)); }

  void perform(caller::Serve&& what) {
    report_.end();
    tell_what_it_has(what.host);
    if (entry_) entry_->runs_on(name_in_lab(what.host));
    FarCommand command(*hosts_[what.host].channel, *signals_, token_, terminal_, options_.run.hooks.look,
                       entry_ ? &*entry_ : nullptr);
    const auto ending = command.serve();
    if (!ending) return (void)answers_.emplace_back(caller::HostLost{what.host, ending.error()});
    end(*ending);
  }

  void perform(caller::EndCancelled&& what) {
    report_.end();
    command::print_message(
        fmt::format("this request was cancelled on {}, so it ends on all hosts", name_of(what.host)));
    hang_up();
    sys::end_like({0, SIGTERM});
  }
  void perform(caller::Fail&& what) {
    report_.end();
    ending_ = std::unexpected(std::move(what.why));
  }

  void perform(caller::Sleep&& what) { sleep_ = what; }

  void send(std::size_t host, std::string_view text) {
    if (auto& channel = hosts_[host].channel) channel->send(text);
  }
  void hang_up() {
    for (FarHost& host : hosts_) host.channel.reset();
  }

  // --- what has come

  void listen(std::optional<SteadyTime> until) {
    std::vector<pollfd> others;
    if (signals_) others.push_back({signals_->descriptor(), POLLIN, 0});
    if (entry_) entry_->add_to(others);
    std::vector<Channel*> connected;
    for (FarHost& host : hosts_)
      if (host.channel) connected.push_back(&*host.channel);
    wait_on(connected, others, next_deadline(until));
    handle_signals();
    if (entry_)
      for (caller::Event& what : entry_->poll())
        if (!ending_) happen(std::move(what));
    for (std::size_t host = 0; host < hosts_.size(); ++host) hear(host);
    // Once a host was told yes, nobody waits any more.
    if (!signals_) report_.tell();
  }

  sys::Deadline next_deadline(std::optional<SteadyTime> until) const {
    sys::Deadline next;
    if (until) next = Clock::time_point(*until);
    for (const sys::Deadline& each :
         {report_.next_deadline(), entry_ ? entry_->next_deadline() : std::nullopt})
      if (each) next = std::min(next.value_or(*each), *each);
    return next;
  }

  void hear(std::size_t host) {
    std::optional<Channel>& channel = hosts_[host].channel;
    while (!ending_ && channel) {
      auto message = channel->next_message();
      if (!message) break;
      if (!*message)
        happen(caller::HostLost{host, message->error()});
      else
        hear(host, **message);
    }
    if (!ending_ && channel && channel->has_ended()) happen(caller::HostLost{host, channel->why_ended()});
  }

  void hear(std::size_t host, const EnvoyMessage& message) {
    if (const auto* hello = std::get_if<EnvoyHello>(&message))
      happen(caller::Hello{host, hello->version});
    else if (const auto* offer = std::get_if<Offer>(&message))
      happen(caller::Offered{host, *offer});
    else if (std::holds_alternative<CommandBegun>(message))
      happen(caller::Begins{host});
    else if (std::holds_alternative<Cancelled>(message))
      happen(caller::Cancelled{host});
    else if (const auto* lease = std::get_if<api::LeaseMessage>(&message))
      hear_of_lease(host, *lease);
  }

  void hear_of_lease(std::size_t host, const api::LeaseMessage& message) {
    if (const auto* standing = std::get_if<Standing>(&message)) {
      report_.show(host, *standing);
      happen(caller::WaitsInQueue{host});
    } else if (const auto* snapshot = std::get_if<Snapshot>(&message)) {
      hosts_[host].snapshot = *snapshot;
    } else if (const auto* granted = std::get_if<api::LeaseGranted>(&message)) {
      hosts_[host].grant = *granted;
      happen(caller::Grants{host});
    } else if (const auto* refused = std::get_if<api::LeaseRefused>(&message)) {
      happen(caller::HostLost{host, refused->error});
    }
  }

  // Before the command has begun, a signal ends the wait.
  void handle_signals() {
    const auto signal = signals_ ? signals_->next() : std::nullopt;
    if (!signal || signal->number == SIGWINCH || signal->number == SIGCONT) return;
    if (signal->number == SIGTSTP) return sys::stop_as_by_terminal();
    report_.end();
    hang_up();
    sys::end_like({0, signal->number});
  }

  void end(const ProcessEnd& ending) {
    hang_up();
    const supervise::RunHooks& hooks = options_.run.hooks;
    if (hooks.after_end) hooks.after_end({.process = ending}, std::nullopt);
    if (hooks.at_last) hooks.at_last();
    if (ending.signal != 0) sys::end_like(ending);
    ending_ = ending.exit_status;
  }

  const std::string& name_of(std::size_t host) const { return hosts_[host].as_named.name; }
  std::string name_in_lab(std::size_t host) const { return caller::name_in_lab(name_of(host)); }

  std::vector<std::string> labels_at(std::size_t host) const {
    std::vector<std::string> labels;
    for (const std::string& uuid : hosts_[host].grant.uuids) {
      const Device* device = find_device(hosts_[host].snapshot, uuid);
      labels.push_back(device != nullptr ? label(*device) : printable(uuid));
    }
    return labels;
  }

  std::vector<std::string> devices_at(std::size_t host) const {
    std::vector<std::string> devices = labels_at(host);
    for (std::string& device : devices) device = fmt::format("{}:{}", name_of(host), device);
    return devices;
  }

  void tell_what_it_has(std::size_t host) const {
    const api::LeaseGranted& grant = hosts_[host].grant;
    for (const std::string& note : grant.notes)
      command::print_message(fmt::format("{}: {}", name_of(host), note));
    const supervise::RunOptions& run = options_.run;
    if (!run.verbose && (run.quiet || ::isatty(STDERR_FILENO) != 1)) return;
    const std::string labels = fmt::format("{}", fmt::join(labels_at(host), ","));
    command::print_message(
        fmt::format("{}: GPU {} (lease {})", name_of(host), labels, short_name(Ledger{}, grant.id)));
  }

  const AnywhereRun& options_;
  const Request& request_;
  std::vector<FarHost> hosts_;
  std::string token_;
  SshProgram ssh_;
  bool terminal_;  ///< the command gets one
  HostQueuesReport report_;
  std::string question_, question_for_offer_;
  std::optional<SteadyTime> wait_{};  ///< for each entry in the lab queue; nullopt: no limit is said
  caller::State state_{};
  std::deque<caller::Event> answers_{};
  std::optional<caller::Sleep> sleep_{};
  std::optional<SignalReader> signals_{};
  LabQueueAccess lab_queue_;
  std::optional<LabQueueEntry> entry_{};
  std::optional<Result<int>> ending_{};  ///< as of run_anywhere
};

}  // namespace

Result<int> run_anywhere(const AnywhereRun& asked) {
  AnywhereRun options = asked;
  Request& request = options.run;
  // Here, so that all hosts are asked for the same.
  auto settled = receipts::settle_memory(request, fmt::format("{}", fmt::join(options.run.command, " ")));
  request = std::move(settled.request);
  if (!settled.told.empty() && !options.run.quiet) command::print_message(settled.told);
  BERTH_LET(const auto meant, hosts_meant(options.far.hosts));
  std::vector<FarHost> hosts;
  for (const LabHost& each : meant) hosts.push_back({each});
  BERTH_LET(auto token, secret_mark());
  BERTH_LET(const auto site, site::read_site_files());
  LabQueueAccess lab{site.policy.store_socket, lane_of(options.run.count, site.policy.queue)};
  return Caller(options, std::move(hosts), std::move(token), std::move(lab)).go();
}

}  // namespace berth::hosts
