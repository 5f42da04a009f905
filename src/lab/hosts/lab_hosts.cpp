#include "berth/hosts/lab_hosts.h"

#include <cerrno>
#include <ctime>
#include <memory>
#include <utility>

#include "berth/base/version.h"
#include "berth/command/environment.h"
#include "berth/hosts/ask_hosts.h"
#include "berth/hosts/bare_hosts.h"
#include "berth/hosts/hub_hosts.h"
#include "berth/hosts/kept_connection.h"
#include "berth/site/site_file.h"
#include "berth/sys/environment.h"
#include "berth/view/hosts_json.h"
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
  if (files && files->policy.connection == Connection::kept && ssh.words.front() == "ssh")
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

leasing::LeaseAsk lease_ask_of(const command::RequestOptions& options) {
  leasing::LeaseAsk ask;
  ask.version = version();
  ask.request = options.request;
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

}  // namespace berth::hosts
