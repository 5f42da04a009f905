#pragma once

#include <string>
#include <vector>

#include "berth/api/lease_messages.h"
#include "berth/command/far_options.h"
#include "berth/command/field_options.h"
#include "berth/hosts/model/host_ranking.h"
#include "berth/hosts/ssh.h"
#include "berth/machines/host.h"
#include "berth/machines/lab_standing.h"
#include "berth/request/lab_host.h"
#include "berth/view/layout.h"

namespace berth::hosts {

/// The hosts that the options mean. Error: `usage`; `failure` for a malformed site file.
Result<std::vector<LabHost>> hosts_meant(const command::AnywhereOptions& options);

/// The socket of the agent that keeps the lab queue, as the site file says; "": there is none.
/// Error: `failure` for a malformed site file.
Result<std::string> lab_store_socket();

/// ssh, or the program that BERTH_SSH names.
SshProgram ssh_of_environment();
/// The same without kept connections: the command there hangs on no connection that another command
/// has too, and is not called a second time if a kept connection has ended.
SshProgram ssh_alone();

/// Whether hosts that turn out to have no Berth are asked for their nvidia-smi.
enum class AskBare { no, yes };
/// What each machine tells of itself, or why it tells nothing.
Hosts look_at_hosts(const std::vector<LabHost>& hosts, AskBare bare = AskBare::no);

/// The hosts as docs/schema/hosts.json has them. `order`: of those who wait, if it is known.
Result<std::string> hosts_document(const Hosts& hosts, view::Layout layout, const LabOrder& order = {});

/// What every host offers. `near`: see near_option.
std::vector<HostAnswer> ask_for_offers(const std::vector<LabHost>& hosts,
                                       const command::RequestOptions& options, const std::string& near);

/// The question with which a request goes to a host.
leasing::LeaseAsk lease_ask_of(const command::RequestOptions& options);

}  // namespace berth::hosts
