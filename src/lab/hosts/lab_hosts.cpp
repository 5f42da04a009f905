#include "berth/hosts/lab_hosts.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "berth/base/error.h"
#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/hosts/ask_hosts.h"
#include "berth/hosts/ssh.h"
#include "berth/site/site_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/view/answers_json.h"
#include "berth/view/hosts_reader.h"

namespace berth::hosts {
namespace {

// More would be a mistake, or a case for a hub.
constexpr std::size_t kMostHosts = 256;

Host host_of(const LabHost& asked, const Result<EnvoyMessage>& answer, std::int64_t now_s) {
  Host host{.name = asked.name};
  if (!answer) {
    host.error = answer.error().message;
    return host;
  }
  const auto* report = std::get_if<MachineReport>(&*answer);
  auto read = report != nullptr ? view::read_report(report->listing, report->queue)
                                : fail(ErrorCode::failure, "it does not answer what it was asked");
  if (!read) {
    host.error = read.error().message;
    return host;
  }
  host.seen_s = now_s;
  host.report = std::make_shared<const HostReport>(*std::move(read));
  return host;
}

}  // namespace

Result<std::vector<LabHost>> hosts_meant(const command::AnywhereOptions& options) {
  std::vector<LabHost> hosts;
  BERTH_LET(auto files, site::read_site_files());
  if (is_hub_url(options.hosts) || (options.hosts.empty() && !files.policy.hub.url.empty())) {
    HubAccess hub{.url = options.hosts};
    // The site file knows how to ask this hub.
    if (options.hosts.empty() || options.hosts == files.policy.hub.url) hub = files.policy.hub;
    BERTH_LET(hosts, hosts_of_hub(hub));
  } else if (options.hosts.empty()) {
    hosts = std::move(files.policy.hosts);
  } else {
    BERTH_LET(hosts, lab_hosts_from_text(options.hosts));
    // How Berth is called there, the file knows.
    for (LabHost& host : hosts)
      for (const LabHost& known : files.policy.hosts)
        if (known.name == host.name) host.program = known.program;
  }
  if (hosts.empty())
    return fail(ErrorCode::usage,
                "which hosts? --hosts gpu1,gpu2, or a line in ~/.config/berth.toml or /etc/berth.toml: "
                "hosts = [\"gpu1\", \"gpu2\"]");
  if (hosts.size() > kMostHosts)
    return fail(ErrorCode::usage, "more than 256 hosts: --host names those that are meant");
  return selected_hosts(std::move(hosts), options.only, options.without);
}

Result<std::string> lab_store_socket() {
  BERTH_LET(auto files, site::read_site_files());
  return std::move(files.policy.store_socket);
}

SshProgram ssh_of_environment() {
  SshProgram ssh = ssh_program(sys::variable("BERTH_SSH"));
  const auto files = site::read_site_files();
  // Another program may have no such settings, and do something else when it is asked for them.
  if (files && files->policy.connection == ConnectionLife::kept && ssh.words.front() == "ssh")
    ssh.kept_folder = folder_of_kept();
  return ssh;
}

SshProgram ssh_alone() {
  SshProgram ssh = ssh_of_environment();
  ssh.kept_folder.clear();
  return ssh;
}

Hosts look_at_hosts(const std::vector<LabHost>& hosts, AskBare bare) {
  const SshProgram ssh = ssh_of_environment();
  const auto answers = ask_hosts(ssh, hosts, {}, {});
  std::vector<Host> seen;
  std::vector<LabHost> lacking;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    seen.push_back(host_of(hosts[i], answers[i], std::time(nullptr)));
    if (bare == AskBare::no || answers[i] || answers[i].error().os_error != ENOENT) continue;
    lacking.push_back(hosts[i]);
    indices.push_back(i);
  }
  auto told = ask_bare_hosts(ssh, lacking);
  for (std::size_t i = 0; i < told.size(); ++i)
    if (told[i]) seen[indices[i]].bare = *std::move(told[i]);
  Hosts all;
  for (Host& host : seen) all.push_back(std::make_shared<const Host>(std::move(host)));
  return all;
}

Result<std::string> hosts_document(const Hosts& hosts, view::Layout layout, const LabOrder& order) {
  std::vector<std::string> texts;
  for (const auto& host : hosts) texts.push_back(view::host_json(*host));
  const std::vector<std::string_view> entries(texts.begin(), texts.end());
  const view::HostsHead head{
      .number = 1, .time_s = std::time(nullptr), .every_s = 1, .is_hub = true, .queue = order.standing};
  return view::rewritten(view::hosts_json(head, entries, totals_of(hosts)), "berth-hosts", layout);
}

api::LeaseAsk lease_ask_of(const command::RequestOptions& options) {
  api::LeaseAsk ask;
  ask.version = version();
  ask.request = options;
  return ask;
}

std::vector<HostAnswer> ask_for_offers(const std::vector<LabHost>& hosts,
                                       const command::RequestOptions& options, const std::string& near) {
  EnvoyAsk ask;
  ask.mode = EnvoyMode::offer;
  ask.near = near;
  const auto answers = ask_hosts(ssh_of_environment(), hosts, ask, lease_ask_of(options));
  std::vector<HostAnswer> offers;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    offers.push_back({hosts[i].name, fail(ErrorCode::failure, "it does not answer what it was asked")});
    if (!answers[i])
      offers.back().offer = std::unexpected(answers[i].error());
    else if (const auto* offer = std::get_if<Offer>(&*answers[i]))
      offers.back().offer = *offer;
  }
  return offers;
}

namespace {

using namespace std::chrono_literals;

// Longer than berth-serve waits for a hub.
constexpr std::chrono::milliseconds kWithin = 20s;
// A machine with eight GPUs is about 12 kB, and there is a limit to how many may be asked by ssh.
constexpr std::size_t kMostOfHub = 64U << 20U;

std::vector<std::string> words_for(const HubAccess& hub) {
  std::vector<std::string> words{std::string(command::kListWord), "--json", "--hub", hub.url};
  const auto add = [&](const char* option, const std::string& file) {
    if (file.empty()) return;
    words.emplace_back(option);
    words.push_back(file);
  };
  add("--token-file", hub.token_file);
  add("--ca-file", hub.ca_file);
  if (hub.insecure) words.emplace_back("--insecure");
  return words;
}

Result<std::string> document_of(const HubAccess& hub) {
  BERTH_LET(auto program, command::berth_serve_path());
  BERTH_LET(auto said, command::ask_program_in_time(std::move(program), words_for(hub), kWithin, kMostOfHub,
                                                    "no answer within 20 s"));
  if (said.ending != ProcessEnd())
    return fail(ErrorCode::failure,
                said.err.empty() ? sys::to_text(*said.ending) : command::first_line(said.err));
  return std::move(said.out);
}

}  // namespace

Result<std::vector<LabHost>> hosts_of_hub(const HubAccess& hub) {
  const auto failed = [](std::string_view why) {
    return fail(ErrorCode::failure,
                "the hub does not say which hosts there are: {}; to name them "
                "yourself: --hosts gpu1,gpu2",
                why);
  };
  const auto document = document_of(hub);
  if (!document) return failed(document.error().message);
  const auto told = view::read_hosts(*document);
  if (!told) return failed(told.error().message);
  std::vector<LabHost> hosts;
  for (const view::ReportedHost& each : told->hosts) {
    // It comes from the network.
    if (const auto fit = check_host_name(each.name); !fit) return failed(fit.error().message);
    hosts.push_back({each.name});
  }
  if (hosts.empty()) return failed("it has none");
  return hosts;
}

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The driver may be slow to answer, and a listing does not wait for it for ever.
constexpr auto kPatienceForBare = 10s;
// An ssh server leaves a program alone whose connection has ended. So one that hangs ends itself.
constexpr std::string_view kBareProgram = "timeout -k 5 15 nvidia-smi";
constexpr std::chrono::milliseconds kPatienceForBareEnd = 2s;

/// An ssh that runs nvidia-smi. It ends with the call.
class BareCall {
 public:
  static Result<BareCall> start(const SshProgram& ssh, const LabHost& host) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return sys::fail_errno("making a pipe for ssh");
    sys::Descriptor from(ends[0]);
    const sys::Descriptor theirs(ends[1]);
    sys::Command command =
        ssh_call(ssh, {.name = host.name, .program = std::string(kBareProgram)}, kBareQuery);
    command.output = theirs.get();
    BERTH_LET(auto child, sys::Child::spawn(command));
    return BareCall(std::move(child), std::move(from));
  }

  int descriptor() const { return from_.get(); }
  bool goes_on() const { return bool(from_); }

  void read_some() {
    std::array<char, 4096> piece{};
    const ssize_t got = ::read(from_.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) return;
    if (got > 0) text_.append(piece.data(), static_cast<std::size_t>(got));
    if (got <= 0 || text_.size() > kLongestBareAnswer) from_.close();
  }

  /// After its output has ended, or as much of it as is read.
  Result<std::vector<BareDevice>> answer() {
    if (from_ || text_.size() > kLongestBareAnswer) {
      child_.kill(SIGTERM);
      return fail(ErrorCode::failure,
                  from_ ? "its nvidia-smi does not answer" : "its nvidia-smi says too much");
    }
    const auto ending = child_.wait(kPatienceForBareEnd);
    if (!ending) child_.kill(SIGTERM);
    if (ending != ProcessEnd{}) return fail(ErrorCode::failure, "it has no nvidia-smi that works");
    return bare_devices_from_csv(text_);
  }

 private:
  BareCall(sys::Child child, sys::Descriptor from) : child_(std::move(child)), from_(std::move(from)) {}

  sys::Child child_;
  sys::Descriptor from_;
  std::string text_;
};

/// Until all have ended, or the time is over.
void listen_to(std::vector<Result<BareCall>>& calls) {
  const auto until = Clock::now() + kPatienceForBare;
  for (;;) {
    std::vector<pollfd> polled;
    std::vector<BareCall*> open;
    for (auto& call : calls) {
      if (!call || !call->goes_on()) continue;
      polled.push_back({call->descriptor(), POLLIN, 0});
      open.push_back(&*call);
    }
    const int left_ms = sys::poll_timeout(until);
    if (open.empty() || left_ms == 0) return;
    if (::poll(polled.data(), polled.size(), left_ms) <= 0) continue;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (polled[i].revents != 0) open[i]->read_some();
  }
}

}  // namespace

std::vector<Result<std::vector<BareDevice>>> ask_bare_hosts(const SshProgram& ssh,
                                                            const std::vector<LabHost>& hosts) {
  std::vector<Result<BareCall>> calls;
  for (const LabHost& host : hosts) calls.push_back(BareCall::start(ssh, host));
  listen_to(calls);
  std::vector<Result<std::vector<BareDevice>>> answers;
  for (auto& call : calls) {
    if (call)
      answers.push_back(call->answer());
    else
      answers.push_back(std::unexpected(call.error()));
  }
  return answers;
}

}  // namespace berth::hosts
