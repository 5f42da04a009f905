#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/command/syntax.h"

namespace berth::command {

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

/// Checks the options. Error: `usage` if hosts are named without --anywhere.
Result<void> settle(const AnywhereOptions& options);
Result<void> settle(const FarOptions& options);

}  // namespace berth::command
