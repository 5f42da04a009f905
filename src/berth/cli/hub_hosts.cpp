#include "berth/cli/hub_hosts.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <string>
#include <string_view>

#include "berth/cli/serve_program.h"
#include "berth/core/printable.h"
#include "berth/render/host_report.h"
#include "berth/sys/child.h"
#include "berth/sys/file.h"
#include "berth/sys/newer_calls.h"
#include "berth/sys/system_error.h"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

// Longer than berth-serve waits for a hub.
constexpr std::chrono::milliseconds kWithin = 20s;
// A machine with eight GPUs is about 12 kB, and there is a limit to how many may be asked by ssh.
constexpr std::size_t kMostOfHub = 64U << 20U;
constexpr std::size_t kMostOfReason = 1000;

std::vector<std::string> words_for(const HubPlace& hub) {
  std::vector<std::string> words{std::string(kListWord), "--json", "--hub", hub.url};
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

/// What a program of ours says of why it fails: the first line, without its own name.
std::string reason_in(std::string_view said) {
  std::string_view line = said.substr(0, said.find('\n'));
  if (line.starts_with("berth: ")) line.remove_prefix(7);
  return printable(line);
}

Result<std::string> document_of(const HubPlace& hub) {
  const sys::Descriptor said = sys::memory_file("berth-hub");
  const sys::Descriptor reason = sys::memory_file("berth-hub");
  if (!said || !reason) return sys::fail_errno("preparing a file");
  BERTH_LET(const auto program, berth_serve_path());
  BERTH_LET(
      auto child,
      sys::Child::spawn(
          {.program = program, .arguments = words_for(hub), .output = said.get(), .error = reason.get()}));
  const auto ending = child.wait(kWithin);
  if (!ending) {
    child.kill(SIGKILL);
    return fail(ErrorCode::failure, "no answer within 20 s");
  }
  if (ending->exit_status != 0) {
    BERTH_LET(const auto words, sys::read_start(reason.get(), kMostOfReason));
    return fail(ErrorCode::failure, words.empty() ? to_text(*ending) : reason_in(words));
  }
  return sys::read_start(said.get(), kMostOfHub);
}

}  // namespace

Result<std::vector<LabHost>> hosts_of_hub(const HubPlace& hub) {
  const auto failed = [](std::string_view why) {
    return fail(ErrorCode::failure,
                fmt::format("the hub does not say which hosts there are: {}; to name them "
                            "yourself: --hosts gpu1,gpu2",
                            why));
  };
  const auto document = document_of(hub);
  if (!document) return failed(document.error().message);
  const auto told = render::read_hosts(*document);
  if (!told) return failed(told.error().message);
  std::vector<LabHost> hosts;
  for (const render::ToldHost& each : told->hosts) {
    // It comes from the network.
    if (const auto fit = check_host_name(each.name); !fit) return failed(fit.error().message);
    hosts.push_back({each.name});
  }
  if (hosts.empty()) return failed("it has none");
  return hosts;
}

}  // namespace berth::cli
