#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/api/lease_wire.h"
#include "berth/cli/request_options.h"
#include "berth/cli/syntax.h"
#include "berth/core/host.h"
#include "berth/core/lab_host.h"
#include "berth/core/offer.h"
#include "berth/lab/ssh.h"
#include "berth/render/json.h"

namespace berth::cli {

/// `--anywhere`, and of which hosts.
struct AnywhereOptions {
  bool anywhere = false;
  std::string hosts;                       ///< --hosts; "": those of the site file
  std::vector<std::string> only, without;  ///< --host, --not-host
};

inline constexpr std::string_view kAnywhereGroup = "Other machines";

/// `help`: of --anywhere.
void add_anywhere_options(Syntax& syntax, AnywhereOptions& options, std::string_view help);

/// The hosts that are meant. Error: `usage`; `failure`, for a site file that is malformed.
Result<std::vector<LabHost>> hosts_meant(const AnywhereOptions& options);

/// Error: `usage`, where hosts are named and --anywhere is not.
Result<void> settle(const AnywhereOptions& options);

/// ssh, or what BERTH_SSH says.
lab::SshProgram ssh_of_environment();

/// Every machine as it tells of itself, or why it does not.
Hosts look_at_hosts(const std::vector<LabHost>& hosts);

/// The hosts as docs/schema/hosts.json has them.
Result<std::string> hosts_document(const Hosts& hosts, render::Layout layout);

/// What every host offers.
std::vector<HostAnswer> ask_for_offers(const std::vector<LabHost>& hosts, const RequestOptions& options);

/// The question with which a request goes to a host.
api::LeaseAsk lease_ask_of(const RequestOptions& options);

}  // namespace berth::cli
