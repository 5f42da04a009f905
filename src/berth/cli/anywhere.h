#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/api/lease_wire.h"
#include "berth/cli/request_options.h"
#include "berth/cli/syntax.h"
#include "berth/core/host.h"
#include "berth/core/lab_host.h"
#include "berth/core/lab_line.h"
#include "berth/core/offer.h"
#include "berth/lab/ssh.h"
#include "berth/render/json.h"

namespace berth::cli {

/// `--anywhere`, and the hosts that it is for.
struct AnywhereOptions {
  bool anywhere = false;
  std::string hosts;  ///< --hosts: names, or the URL of a hub; "": those of the site file
  std::vector<std::string> only, without;  ///< --host, --not-host
};

/// Where a command is to run, and what it gets from here.
struct FarOptions {
  AnywhereOptions hosts;
  std::string folder{};                 ///< of the command on the host; "": the same as here
  std::string passed_variables{"all"};  ///< --env
  std::string near{};                   ///< --near: a path; "": none
};

inline constexpr std::string_view kAnywhereGroup = "Other machines";

/// `help`: the help text of --anywhere.
void add_anywhere_options(Syntax& syntax, AnywhereOptions& options, std::string_view help);

/// Adds also --folder and --env. `help`: the help text of --anywhere.
void add_far_options(Syntax& syntax, FarOptions& options, std::string_view help);

/// `--near PATH`, which prefers hosts that have the path.
Option near_option(std::string& near);

/// The hosts that the options mean. Error: `usage`; `failure` for a malformed site file.
Result<std::vector<LabHost>> hosts_meant(const AnywhereOptions& options);

/// The socket of the agent that keeps the line of the lab, as the site file says; "": there is none. Error:
/// `failure` for a malformed site file.
Result<std::string> lab_store_socket();

/// Checks the options. Error: `usage` if hosts are named without --anywhere.
Result<void> settle(const AnywhereOptions& options);
Result<void> settle(const FarOptions& options);

/// ssh, or the program that BERTH_SSH names.
lab::SshProgram ssh_of_environment();

/// What each machine tells of itself, or why it tells nothing.
Hosts look_at_hosts(const std::vector<LabHost>& hosts);

/// The hosts as docs/schema/hosts.json has them. `order`: of those who wait, if it is known.
Result<std::string> hosts_document(const Hosts& hosts, render::Layout layout, const LabOrder& order = {});

/// What every host offers. `near`: see near_option.
std::vector<HostAnswer> ask_for_offers(const std::vector<LabHost>& hosts, const RequestOptions& options,
                                       const std::string& near);

/// The question with which a request goes to a host.
api::LeaseAsk lease_ask_of(const RequestOptions& options);

}  // namespace berth::cli
