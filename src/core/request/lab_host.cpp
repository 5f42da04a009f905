#include "berth/request/lab_host.h"

#include <algorithm>

#include "berth/base/fail.h"
#include "berth/base/printable.h"

namespace berth {
namespace {

constexpr std::size_t kLongestHostName = 253 + 64;  // a name of DNS, after a user's and "@"
constexpr std::string_view kHostCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:[]%";
constexpr std::string_view kProgramCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/~+";

std::string all_names(const std::vector<LabHost>& hosts) {
  std::string names;
  for (const LabHost& each : hosts) names += (names.empty() ? "" : ", ") + each.name;
  return names;
}

Result<void> are_known(const std::vector<LabHost>& hosts, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::ranges::find(hosts, name, &LabHost::name) != hosts.end()) continue;
    return fail(ErrorCode::usage, "no host is called '{}'; there are {}", printable(name), all_names(hosts));
  }
  return {};
}

}  // namespace

bool is_hub_url(std::string_view hosts) {
  return hosts.contains("://");
}

Result<void> check_host_name(std::string_view name) {
  const std::string_view host = name.substr(name.rfind('@') + 1);
  if (name.empty() || host.empty()) return fail(ErrorCode::usage, "a host needs a name");
  if (name.starts_with('-') || host.starts_with('-'))
    return fail(ErrorCode::usage, "'{}' is no name of a host: ssh would take it for an option",
                printable(name));
  if (name.size() > kLongestHostName || name.find_first_not_of(kHostCharacters) != std::string_view::npos)
    return fail(ErrorCode::usage,
                "'{}' is no name of a host: it may have letters, digits and . _ - @ : [ ] %",
                printable(name.substr(0, kLongestHostName)));
  return {};
}

Result<void> check_host_program(std::string_view program) {
  if (!program.empty() && !program.starts_with('-') &&
      program.find_first_not_of(kProgramCharacters) == std::string_view::npos)
    return {};
  return fail(ErrorCode::usage,
              "'{}' is no path of a program on a host: it may have letters, digits and . _ - / ~ +",
              printable(program));
}

Result<Connection> connection_from_text(std::string_view text) {
  if (text == "kept") return Connection::kept;
  if (text == "each") return Connection::each;
  return fail(ErrorCode::usage, "must be \"kept\" or \"each\"");
}

Result<std::vector<LabHost>> lab_hosts_from_text(std::string_view text) {
  std::vector<LabHost> hosts;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    BERTH_DO(check_host_name(name));
    if (std::ranges::find(hosts, name, &LabHost::name) != hosts.end())
      return fail(ErrorCode::usage, "names {} twice", name);
    hosts.push_back({std::string(name)});
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<LabHost>> selected_hosts(std::vector<LabHost> hosts, const std::vector<std::string>& only,
                                            const std::vector<std::string>& without) {
  BERTH_DO(are_known(hosts, only));
  BERTH_DO(are_known(hosts, without));
  std::erase_if(hosts, [&](const LabHost& host) {
    const bool named = only.empty() || std::ranges::find(only, host.name) != only.end();
    return !named || std::ranges::find(without, host.name) != without.end();
  });
  if (hosts.empty()) return fail(ErrorCode::usage, "no host is left: --not-host excludes all of them");
  return hosts;
}

}  // namespace berth
