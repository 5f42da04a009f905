// `berth run --anywhere`: in the queue on several hosts at once, through an ssh to each, until one of them
// grants the request and asks whether to start. Which host that is, is decided here and nowhere else
// (src/berth/hosts/model/host_selection.h). From then on this process passes streams, signals and the window.

#include "berth/hosts/anywhere_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/command/environment.h"
#include "berth/command/messages.h"
#include "berth/hosts/ask_hosts.h"
#include "berth/hosts/channel.h"
#include "berth/hosts/far_command.h"
#include "berth/hosts/host_queues_report.h"
#include "berth/hosts/lab_queue_entry.h"
#include "berth/hosts/model/host_selection.h"
#include "berth/hosts/own_terminal.h"
#include "berth/hosts/passed_environment.h"
#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/lease/earlier_runs.h"
#include "berth/lease/site_file.h"
#include "berth/sys/environment.h"
#include "berth/sys/job_process.h"
#include "berth/sys/terminal.h"
#include "berth/view/explain.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;
using host_selection::Message;
using Clock = std::chrono::steady_clock;

// Hosts that have made no offer by then are not waited for, where others have.
constexpr auto kPatienceForOffers = 3s;
// How much longer than for the first offer, or the first grant, the others are waited for: the best of those
// that can start it now is chosen, and not the one whose ssh was first.
constexpr int kGatheringShare = 5;
constexpr auto kLongestGathering = 50ms;
// Of a wait: the host's site decides.
constexpr std::int64_t kNotSaid = -1;
// How a wait goes is told from here on: often another host grants the request within this time.
constexpr auto kFirstReport = 1s;
// When the time is over, an agent that has not told the place yet is given so long to say it, or that the
// store does not answer: it waits 3 s for that.
constexpr auto kPatienceForPlace = 5s;
// A host that lets a grant go sooner has failed, and was not only told nothing.
constexpr auto kGrantIsKept = 5s;

// As the user came here: links in it may lead elsewhere on another host.
Result<std::string> folder_as_called() {
  const std::string named(command::variable("PWD"));
  struct stat by_name{};
  struct stat here{};
  if (named.starts_with('/') && ::stat(named.c_str(), &by_name) == 0 && ::stat(".", &here) == 0 &&
      by_name.st_dev == here.st_dev && by_name.st_ino == here.st_ino)
    return named;
  auto folder = sys::current_folder();
  if (!folder) return std::unexpected(context(folder.error(), "give the folder with --folder PATH"));
  return folder;
}

std::vector<std::string> names_of(const std::vector<LabHost>& hosts) {
  std::vector<std::string> names;
  for (const LabHost& host : hosts) names.push_back(host.name);
  return names;
}

// In the lab queue a host is one host, whoever logs in there.
std::string name_in_lab(const LabHost& host) {
  return host.name.substr(host.name.rfind('@') + 1);
}

// A command there hangs on no connection that another command has too.
SshProgram ssh_alone() {
  SshProgram ssh = ssh_of_environment();
  ssh.kept_folder.clear();
  return ssh;
}

/// The lab queue, where the site has one.
struct LabQueueAccess {
  std::string socket;  ///< of the agent that keeps it; "": there is none
  unsigned lane = 0;   ///< of the request
};

class Caller {
 public:
  Caller(const AnywhereRun& options, std::vector<LabHost> hosts, std::string token, LabQueueAccess lab)
      : options_(options),
        request_(options.run.lease.request.request),
        hosts_(std::move(hosts)),
        token_(std::move(token)),
        ssh_(ssh_alone()),
        terminal_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1),
        report_(view::request_in_words(request_), names_of(hosts_), options.run.quiet),
        untold_(hosts_.size()),
        has_stood_(hosts_.size()),
        left_(hosts_.size()),
        snapshots_(hosts_.size()),
        grants_(hosts_.size()),
        granted_at_(hosts_.size()),
        lab_queue_(std::move(lab)),
        offers_are_in_(joining() == host_selection::Joining::as_opened) {}

  Result<int> go() {
    BERTH_DO(prepare_question());
    open_all();
    while (!selection_.failure && !selection_.started && !stopped_) {
      if (!awaited_.empty()) enter_lab_queue();
      if (stopped_) break;
      std::vector<pollfd> others;
      if (signals_) others.push_back({signals_->descriptor(), POLLIN, 0});
      if (entry_) entry_->add_to(others);
      wait_on(channels_, others, next_deadline());
      handle_signals();
      if (entry_) poll_lab_queue();
      for (std::size_t i = 0; i < channels_.size(); ++i)
        if (channels_[i]) hear(i);
      tell_standings();
      handle_times();
      choose_of_granting();
    }
    report_.end();
    if (stopped_) return std::unexpected(*stopped_);
    if (selection_.failure) return std::unexpected(*selection_.failure);
    return serve();
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
    ask.ids = run.lease.request.uuids ? "uuid" : "";
    if (run.lease.request.source != source::SourceKind::kAutomatic)
      ask.source = source::to_text(run.lease.request.source);
    ask.token = token_;
    ask.origin = origin_of(sys::host_name(), ::getpid());
    ask.end_with_command = run.end_with_command;
    leasing::LeaseAsk lease = lease_ask_of(run.lease.request);
    lease.note = run.lease.note;
    BERTH_LET(const auto wait_s, wait_that_is_said(run.lease, kNotSaid));
    ask.patient = !wait_s;
    if (wait_s && wait_s != kNotSaid) lease.wait = std::chrono::seconds(*wait_s);
    wait_ = lease.wait;
    BERTH_LET(lease.variables, passed_environment(options_.far.passed_variables, command::own_environment()));
    for (const auto& [name, value] : run.hooks.environment)
      lease.variables.push_back(fmt::format("{}={}", name, value));
    ask.mode = EnvoyMode::offer;
    question_for_offer_ = encode(ask) + leasing::encode(lease);
    ask.mode = EnvoyMode::run;
    question_ = encode(ask) + leasing::encode(lease);
    return {};
  }

  void handle_times() {
    const auto now = Clock::now();
    if (first_offer_at_ && !first_offers_are_in_ && now >= gathered_at(*first_offer_at_)) {
      first_offers_are_in_ = true;
      happen(0, host_selection::FirstOffers{});
    }
    if (!offers_are_in_ && now >= began_ + kPatienceForOffers) {
      offers_are_in_ = true;
      happen(0, host_selection::EnoughOffers{});
    }
  }

  // When those about as near as the one that was the first at `first` have been heard too.
  Clock::time_point gathered_at(Clock::time_point first) const {
    return first + std::min<Clock::duration>((first - began_) / kGatheringShare, kLongestGathering);
  }

  void choose_of_granting() {
    if (selection_.chosen || asking_ || stopped_) return;
    std::vector<std::size_t> granting;
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (grants_[i] && channels_[i]) granting.push_back(i);
    if (granting.empty() || (is_gathering() && Clock::now() < gathered_at(*first_grant_at_))) return;
    const std::size_t host = host_selection::tightest(selection_, granting);
    if (!has_queue()) return happen(host, host_selection::AsksToStart{});
    // Whether it may start there, the store says.
    asking_ = host;
    entry_->ask_to_start(name_in_lab(hosts_[host]));
  }

  /// Whether a host in whose line it stands may still grant it at once.
  bool is_gathering() const {
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (selection_.hosts[i].state == host_selection::HostState::in_queue && !grants_[i] && !has_stood_[i])
        return true;
    return false;
  }

  bool has_queue() const { return !lab_queue_.socket.empty(); }

  host_selection::Joining joining() const {
    using enum host_selection::Joining;
    if (has_queue()) return options_.far.near.empty() ? as_opened : as_opened_by_offers;
    return options_.far.near.empty() ? few_at_once : by_offers;
  }

  void open_all() {
    auto step = host_selection::begin(request_, names_of(hosts_), joining());
    selection_ = std::move(step.state);
    channels_.resize(hosts_.size());
    // A host gets its messages after its greeting.
    for (const Message& message : step.messages) {
      if (message.kind == Message::Kind::await_opening)
        awaited_.push_back(message.host);
      else
        open_channel(message.host);
    }
  }

  void open_channel(std::size_t i) {
    auto channel = Channel::open(hosts_[i], ssh_, terminal_);
    if (channel)
      channels_[i] = std::make_unique<Channel>(*std::move(channel));
    else
      leave(i, channel.error());
  }

  // --- the lab queue

  // A single entry serves all of these hosts; an earlier entry was for hosts that are all gone.
  void enter_lab_queue() {
    std::vector<std::string> names;
    for (const std::size_t i : std::exchange(awaited_, {})) names.push_back(name_in_lab(hosts_[i]));
    auto entry = LabQueueEntry::take(lab_queue_.socket, lab_queue_.lane, request_.count, std::move(names));
    if (!entry) {
      stopped_ = entry.error();
      return;
    }
    entry_ = *std::move(entry);
    is_told_ = false;
    limit_.clear();
    absence_.clear();
    silence_.clear();
    entered_at_ = Clock::now();
    if (wait_) until_ = entered_at_ + *wait_;
  }

  void poll_lab_queue() {
    const LabQueueEntry::News news = entry_->poll();
    for (const std::string& name : news.opened)
      for (const std::size_t i : hosts_named(name)) open_host(i);
    for (const std::string& name : news.closed)
      for (const std::size_t i : hosts_named(name)) close_host(i);
    if (news.absent) tell_absence(*news.absent);
    if (news.silent) tell_silence(*news.silent);
    if (news.limit) tell_limit(*news.limit);
    if (news.yes) start_on(*news.yes);
    if (news.ended && !selection_.chosen) stopped_ = news.ended;
    if (news.position) report_position(*news.position);
    const auto now = Clock::now();
    if (!until_ || now < *until_ || stopped_ || !awaited_.empty()) return;
    if (is_told_ || news.silent || now >= *until_ + kPatienceForPlace) give_up_unopened();
  }

  // The envoy joins by itself, so the word is not passed on.
  void open_host(std::size_t i) {
    if (selection_.chosen || selection_.hosts[i].state != host_selection::HostState::awaited) return;
    selection_ = host_selection::next(std::move(selection_), i, host_selection::Opened{}).state;
    open_channel(i);
  }

  // Until it is opened again.
  void close_host(std::size_t i) {
    if (selection_.chosen) return;
    disconnect(i);
    grants_[i].reset();
    untold_[i].reset();
    if (asking_ == i) asking_.reset();
    happen(i, host_selection::Closed{});
    entry_->let_go(name_in_lab(hosts_[i]));
  }

  // If this host was lost meanwhile, the agent was told so and takes the start back.
  void start_on(const std::string& name) {
    for (const std::size_t i : hosts_named(name))
      if (asking_ == i) return happen(i, host_selection::AsksToStart{});
  }

  std::vector<std::size_t> hosts_named(std::string_view name) const {
    std::vector<std::size_t> named;
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (name_in_lab(hosts_[i]) == name) named.push_back(i);
    return named;
  }

  void tell_limit(const std::string& why) {
    limit_ = why;
    if (why.empty() || options_.run.quiet) return;
    report_.end();
    command::print_message(fmt::format("this request waits, because {}", why));
  }

  void tell_absence(const std::string& why) {
    absence_ = why;
    if (options_.run.quiet || wait_ == 0ms) return;
    report_.end();
    command::print_message(
        why.empty() ? "the agent is there now"
                    : fmt::format("this request waits for the agent of this machine, 30 s at most: {}", why));
  }

  void tell_silence(const std::string& why) {
    silence_ = why;
    if (options_.run.quiet) return;
    report_.end();
    command::print_message(
        why.empty()
            ? "the store of the lab answers again"
            : fmt::format("the store of the lab does not answer, so nothing starts; this request keeps "
                          "its place: {}",
                          why));
  }

  void report_position(std::size_t position) {
    is_told_ = true;
    const bool stands = std::ranges::any_of(channels_, [](const auto& each) { return each != nullptr; });
    if (!options_.run.quiet && !stands && position > 0)
      command::print_message(fmt::format("waiting behind {} request{} in the queue of the lab", position,
                                         position == 1 ? "" : "s"));
  }

  void give_up_unopened() {
    const bool no_wait = *until_ == entered_at_;
    std::string reason =
        no_wait ? "earlier requests wait for it in the queue of the lab"
                : "earlier requests waited for it in the queue of the lab until the time was over";
    if (!limit_.empty()) reason = limit_;
    if (!absence_.empty())
      reason = absence_;
    else if (!silence_.empty())
      reason = fmt::format("the store of the lab does not answer: {}", silence_);
    else if (!is_told_)
      reason = "the store of the lab does not answer";
    const Error why{no_wait ? ErrorCode::not_now : ErrorCode::timed_out, reason};
    // Where the last of them is left, others become awaited, with a time of their own.
    std::vector<std::size_t> unopened;
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (selection_.hosts[i].state == host_selection::HostState::awaited) unopened.push_back(i);
    for (const std::size_t i : unopened) leave(i, why);
  }

  // A host waits some time for the word and then lets the GPUs go. The request gets in the queue there again,
  // when it is opened again: its place in the lab queue is the same.
  bool requeues(std::size_t i, const Error& why) {
    if (!entry_ || !grants_[i] || selection_.chosen) return false;
    grants_[i].reset();
    const auto now = Clock::now();
    // The host says so itself. Whoever was stopped for long reads the grant only now.
    const bool has_waited = why.code == ErrorCode::timed_out || now - granted_at_[i] >= kGrantIsKept;
    if (!has_waited || (until_ && now >= *until_)) return false;
    close_host(i);
    return true;
  }

  std::optional<Clock::time_point> next_deadline() const {
    std::optional<Clock::time_point> next;
    const auto at_latest = [&](Clock::time_point at) { next = std::min(next.value_or(at), at); };
    if (!offers_are_in_) at_latest(began_ + kPatienceForOffers);
    if (first_offer_at_ && !first_offers_are_in_) at_latest(gathered_at(*first_offer_at_));
    if (first_grant_at_ && !asking_ && Clock::now() < gathered_at(*first_grant_at_))
      at_latest(gathered_at(*first_grant_at_));
    if (Clock::now() < began_ + kFirstReport) at_latest(began_ + kFirstReport);
    if (entry_) {
      if (const auto at = entry_->next_deadline()) at_latest(*at);
      if (until_ && Clock::now() < *until_)
        at_latest(*until_);
      else if (until_ && !is_told_)
        at_latest(*until_ + kPatienceForPlace);
    }
    for (const auto& channel : channels_)
      if (channel && !channel->has_greeted()) at_latest(channel->opened_at() + kPatienceForHello);
    return next;
  }

  void hear(std::size_t i) {
    while (channels_[i] && !selection_.started && !stopped_) {
      auto message = channels_[i]->next_message();
      if (!message) break;
      if (!*message)
        leave(i, message->error());
      else
        take(i, **message);
    }
    if (!channels_[i] || selection_.started || stopped_) return;
    const Channel& channel = *channels_[i];
    if (channel.has_ended())
      leave(i, channels_[i]->why_ended());
    else if (!channel.has_greeted() && Clock::now() >= channel.opened_at() + kPatienceForHello)
      leave(i, why_silent(hosts_[i], kPatienceForHello, false));
  }

  void take(std::size_t i, const EnvoyMessage& message) {
    if (const auto* hello = std::get_if<EnvoyHello>(&message)) {
      if (const auto known = check_hello(*hello); !known) return leave(i, known.error());
      const bool is_asked = selection_.hosts[i].state == host_selection::HostState::asked;
      channels_[i]->send(is_asked ? question_for_offer_ : question_);
    } else if (const auto* offer = std::get_if<Offer>(&message)) {
      if (!first_offer_at_) first_offer_at_ = Clock::now();
      // No connection is kept for as long as the request waits in the lab queue.
      if (has_queue() && selection_.hosts[i].state == host_selection::HostState::asked) disconnect(i);
      happen(i, host_selection::Offered{*offer});
    } else if (std::holds_alternative<Begun>(message)) {
      happen(i, host_selection::Begins{});
    } else if (std::holds_alternative<Cancelled>(message)) {
      end_cancelled(i);
    } else if (const auto* lease = std::get_if<leasing::LeaseMessage>(&message)) {
      take_of_lease(i, *lease);
    }
  }

  // As a request ends that is cancelled here.
  [[noreturn]] void end_cancelled(std::size_t i) {
    report_.end();
    command::print_message(
        fmt::format("this request was cancelled on {}, so it ends on all hosts", hosts_[i].name));
    for (auto& channel : channels_) channel.reset();
    sys::end_like({0, SIGTERM});
  }

  void take_of_lease(std::size_t i, const leasing::LeaseMessage& message) {
    if (entry_) entry_->joined(name_in_lab(hosts_[i]));
    if (const auto* standing = std::get_if<Standing>(&message)) {
      untold_[i] = *standing;
      has_stood_[i] = true;
    } else if (const auto* snapshot = std::get_if<Snapshot>(&message)) {
      snapshots_[i] = *snapshot;
    } else if (const auto* granted = std::get_if<leasing::LeaseGranted>(&message)) {
      grants_[i] = *granted;
      granted_at_[i] = Clock::now();
      if (!first_grant_at_) first_grant_at_ = granted_at_[i];
    } else if (const auto* refused = std::get_if<leasing::LeaseRefused>(&message)) {
      leave(i, refused->error);
    }
  }

  void tell_standings() {
    if (selection_.chosen || Clock::now() < began_ + kFirstReport) return;
    for (std::size_t i = 0; i < untold_.size(); ++i) {
      if (untold_[i]) report_.show(i, *untold_[i]);
      if (left_[i]) report_.drop(i, *left_[i]);
      untold_[i].reset();
      left_[i].reset();
    }
  }

  void leave(std::size_t i, Error why) {
    if (requeues(i, why)) return;
    if (!selection_.chosen) {
      // Nothing has started there, and the next host that grants it is asked for.
      if (entry_) entry_->left(name_in_lab(hosts_[i]));
      if (asking_ == i) asking_.reset();
    }
    channels_[i].reset();
    untold_[i].reset();
    const std::string text = why.message;
    happen(i, host_selection::Gone{std::move(why)});
    if (!selection_.failure && !selection_.chosen) left_[i] = text;
  }

  void happen(std::size_t i, host_selection::Event what) {
    host_selection::Step step = host_selection::next(std::move(selection_), i, std::move(what));
    selection_ = std::move(step.state);
    for (const Message& message : step.messages) pass_on(message);
  }

  void pass_on(const Message& message) {
    auto& channel = channels_[message.host];
    if (message.kind == Message::Kind::await_opening) {
      disconnect(message.host);  // it has not offered
      awaited_.push_back(message.host);
      return;
    }
    if (!channel) return;
    if (message.kind == Message::Kind::join) {
      channel->send(encode(CallerWord::join));
    } else if (message.kind == Message::Kind::yes) {
      const auto& hook = options_.run.hooks.before_yes;
      if (const auto goes_on = hook ? hook(devices_at(message.host)) : Result<void>{}; !goes_on) {
        stopped_ = goes_on.error();
        channel.reset();
        return;
      }
      // From here on a signal is for the command, wherever that is.
      signals_.emplace(terminal_);
      channel->send(encode(CallerWord::yes));
    } else if (message.kind == Message::Kind::let_go) {
      disconnect(message.host);
    }
  }

  void disconnect(std::size_t i) {
    if (channels_[i]) channels_[i]->let_go();
    channels_[i].reset();
  }

  // Before the command has begun, a signal ends the wait.
  void handle_signals() {
    const auto signal = signals_ ? signals_->next() : std::nullopt;
    if (!signal || signal->number == SIGWINCH || signal->number == SIGCONT) return;
    if (signal->number == SIGTSTP) return sys::stop_as_by_terminal();
    report_.end();
    for (auto& channel : channels_) channel.reset();
    sys::end_like({0, signal->number});
  }

  Result<int> serve() {
    const std::size_t host = *selection_.chosen;
    tell_what_it_has(host);
    if (entry_) entry_->runs_on(name_in_lab(hosts_[host]));
    FarCommand command(*channels_[host], *signals_, token_, terminal_, options_.run.hooks.look,
                       entry_ ? &*entry_ : nullptr);
    auto ending = command.serve();
    if (!ending) {
      happen(host, host_selection::Gone{ending.error()});
      return std::unexpected(*selection_.failure);
    }
    channels_.clear();
    const supervise::RunHooks& hooks = options_.run.hooks;
    if (hooks.after_end) hooks.after_end(*ending, std::nullopt);
    if (hooks.at_last) hooks.at_last();
    if (ending->signal != 0) sys::end_like(*ending);
    return ending->exit_status;
  }

  std::vector<std::string> labels_at(std::size_t host) const {
    std::vector<std::string> labels;
    for (const std::string& uuid : grants_[host]->uuids) {
      const Device* device = find_device(snapshots_[host], uuid);
      labels.push_back(device != nullptr ? label(*device) : printable(uuid));
    }
    return labels;
  }

  std::vector<std::string> devices_at(std::size_t host) const {
    std::vector<std::string> devices = labels_at(host);
    for (std::string& device : devices) device = fmt::format("{}:{}", hosts_[host].name, device);
    return devices;
  }

  void tell_what_it_has(std::size_t host) const {
    for (const std::string& note : grants_[host]->notes)
      command::print_message(fmt::format("{}: {}", hosts_[host].name, note));
    const supervise::RunOptions& run = options_.run;
    if (!run.verbose && (run.quiet || ::isatty(STDERR_FILENO) != 1)) return;
    const std::string labels = fmt::format("{}", fmt::join(labels_at(host), ","));
    command::print_message(fmt::format("{}: GPU {} (lease {})", hosts_[host].name, labels,
                                       short_name(Ledger{}, grants_[host]->id)));
  }

  const AnywhereRun& options_;
  const Request& request_;
  std::vector<LabHost> hosts_;
  std::string token_;
  SshProgram ssh_;
  bool terminal_;  ///< the command gets one
  HostQueuesReport report_;
  std::vector<std::optional<Standing>> untold_;   ///< of each host, the last
  std::vector<bool> has_stood_;                   ///< of each host: its grant did not come at once
  std::vector<std::optional<std::string>> left_;  ///< of each host, why it is out, until it is told
  std::vector<Snapshot> snapshots_;               ///< of each host, when it granted
  std::vector<std::optional<leasing::LeaseGranted>>
      grants_;  ///< of each host, while it asks whether to start
  std::vector<Clock::time_point> granted_at_;
  std::string question_, question_for_offer_;
  host_selection::State selection_;
  Channels channels_;
  std::optional<SignalReader> signals_;
  std::optional<Error> stopped_{};  ///< on this side: no yes is said
  LabQueueAccess lab_queue_;
  std::vector<std::size_t> awaited_{};  ///< the hosts for which it is to take a place
  std::optional<LabQueueEntry> entry_{};
  std::optional<std::size_t> asking_{};  ///< the host for which the store is asked whether to start
  bool is_told_ = false;                 ///< which hosts are open to it
  std::string absence_{};                ///< why the agent was not reached yet; "": it was
  std::string silence_{};                ///< why the store does not answer; "": it does
  std::string limit_{};                  ///< why its user may not start it now; "": the user may
  std::optional<std::chrono::milliseconds> wait_{};  ///< for each place; nullopt: no limit is said
  Clock::time_point entered_at_{};
  std::optional<Clock::time_point> until_{};  ///< it waits no longer for a host to be opened
  std::optional<Clock::time_point> first_offer_at_{};
  std::optional<Clock::time_point> first_grant_at_{};
  bool first_offers_are_in_ = false;
  bool offers_are_in_ = false;
  Clock::time_point began_ = Clock::now();
};

}  // namespace

Result<int> run_anywhere(const AnywhereRun& asked) {
  AnywhereRun options = asked;
  Request& request = options.run.lease.request.request;
  // Here, so that all hosts are asked for the same.
  auto settled = leasing::settle_memory(request, fmt::format("{}", fmt::join(options.run.command, " ")));
  request = std::move(settled.request);
  if (!settled.told.empty() && !options.run.quiet) command::print_message(settled.told);
  BERTH_LET(auto hosts, hosts_meant(options.far.hosts));
  BERTH_LET(auto token, secret_mark());
  BERTH_LET(const auto site, leasing::read_site_files(leasing::standard_site_file_paths()));
  LabQueueAccess lab{site.policy.store_socket,
                     lane_of(options.run.lease.request.request.count, site.policy.queue)};
  return Caller(options, std::move(hosts), std::move(token), std::move(lab)).go();
}

}  // namespace berth::hosts
