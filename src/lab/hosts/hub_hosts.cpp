#include "berth/hosts/hub_hosts.h"

#include <chrono>
#include <string>
#include <string_view>

#include "berth/base/fail.h"
#include "berth/command/ask_program.h"
#include "berth/command/serve_program.h"
#include "berth/view/hosts_reader.h"

namespace berth::hosts {
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

}  // namespace berth::hosts
