#include "berth/hosts/passed_environment.h"

#include <algorithm>
#include <array>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/device/vendor.h"

namespace berth::hosts {
namespace {

// A command line and its variables together have 2 MiB with the usual limits, and one text 128 KiB.
constexpr std::size_t kMostBytes = 1U << 20U;

constexpr std::string_view kOwnNames =
    "HOME USER LOGNAME SHELL MAIL PWD OLDPWD SHLVL _ HOSTNAME TERM COLUMNS LINES TMUX STY WINDOWID "
    "DISPLAY TTY TMPDIR XAUTHORITY KRB5CCNAME GPG_AGENT_INFO GPG_TTY INVOCATION_ID JOURNAL_STREAM "
    "MEMORY_PRESSURE_WATCH MEMORY_PRESSURE_WRITE NOTIFY_SOCKET LD_PRELOAD NVIDIA_VISIBLE_DEVICES";
constexpr auto kOwnBeginnings = std::to_array<std::string_view>(
    {"SSH_", "XDG_", "DBUS_", "BERTH_", "TMUX_", "VTE_", "WAYLAND_", "SLURM_", "PBS_", "SGE_", "KUBERNETES_",
     "SYSTEMD_", "LISTEN_", "VSCODE_", "SUDO_"});

bool is_of_a_mask(std::string_view name) {
  return std::ranges::any_of(vendors(), [&](const Vendor& vendor) {
    return name == vendor.mask_variable || name == vendor.order_variable ||
           std::ranges::find(vendor.inner_variables, name) != vendor.inner_variables.end();
  });
}

bool stays_here(std::string_view name) {
  static const std::vector<std::string_view> own_names = parts_at(kOwnNames, ' ');
  return std::ranges::find(own_names, name) != own_names.end() || is_of_a_mask(name) ||
         std::ranges::any_of(kOwnBeginnings, [&](std::string_view each) { return name.starts_with(each); });
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

Result<std::vector<std::string>> named_variables(std::string_view names,
                                                 const std::vector<std::string>& environment) {
  std::vector<std::string> passed;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const auto found = std::ranges::find(environment, name, name_of);
    if (found == environment.end())
      return fail(ErrorCode::usage, "--env: {} is not set here", printable(name));
    passed.push_back(*found);
    if (comma != std::string_view::npos) names.remove_prefix(comma + 1);
  }
  return passed;
}

Result<void> is_not_too_much(const std::vector<std::string>& passed) {
  std::size_t bytes = 0;
  std::string_view largest;
  for (const std::string& each : passed) {
    bytes += each.size() + 1;
    if (each.size() > largest.size()) largest = each;
  }
  if (bytes <= kMostBytes) return {};
  return fail(ErrorCode::usage,
              "the environment has {}, and a command on another host gets 1 MiB at most; the largest "
              "variable is {} ({}). Name those that it needs: --env PATH,NAME",
              bytes_for_people(bytes), printable(name_of(largest)), bytes_for_people(largest.size()));
}

}  // namespace

Result<std::vector<std::string>> passed_environment(std::string_view which,
                                                    const std::vector<std::string>& environment) {
  std::vector<std::string> passed;
  if (which == "all") {
    std::ranges::copy_if(environment, std::back_inserter(passed), [](const std::string& each) {
      return each.find('=') != std::string::npos && !stays_here(name_of(each));
    });
  } else if (which != "none") {
    BERTH_LET(passed, named_variables(which, environment));
  }
  BERTH_DO(is_not_too_much(passed));
  return passed;
}

}  // namespace berth::hosts
