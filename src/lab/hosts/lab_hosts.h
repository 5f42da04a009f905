#pragma once

#include <string>
#include <vector>

#include "berth/api/lease_messages.h"
#include "berth/base/error.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/model/host_offer.h"
#include "berth/hosts/ssh.h"
#include "berth/machines/host.h"
#include "berth/request/request.h"
#include "berth/view/text.h"

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
api::LeaseAsk lease_ask_of(const command::RequestOptions& options);

/// The machines of this hub, by the names that it has for them. It includes machines that are down,
/// because ssh may reach them. Asks through berth-serve, which has an HTTP client, and waits some
/// seconds at most. Error: `failure`, with what the hub or the connection has said.
Result<std::vector<LabHost>> hosts_of_hub(const HubAccess& hub);

/// What nvidia-smi says on hosts that have no Berth, in their order. All are asked at once, each by
/// one call of ssh, within a time and up to a size. Error: there is no answer that can be read.
std::vector<Result<std::vector<BareDevice>>> ask_bare_hosts(const SshProgram& ssh,
                                                            const std::vector<LabHost>& hosts);

}  // namespace berth::hosts
