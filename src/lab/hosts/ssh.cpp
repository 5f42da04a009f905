#include "berth/hosts/ssh.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "berth/base/printable.h"

namespace berth::hosts {
namespace {

constexpr int kOwnError = 255;
constexpr int kNoSuchCommand = 127;
constexpr int kUsage = 2;

// ssh's name for the first message of both sides.
constexpr std::string_view kTurnedAway = "exchange_identification";

struct Symptom {
  std::string_view said;     ///< by ssh
  std::string_view meaning;  ///< {0} is the host
};
// The first that is found counts.
constexpr std::array kSymptoms{
    Symptom{"REMOTE HOST IDENTIFICATION HAS CHANGED",
            "its host key is not the one that ssh knows. Ask who runs it; if the change is right: "
            "ssh-keygen -R {0}, then ssh {0} once"},
    Symptom{"Host key verification failed",
            "ssh does not know its host key. Run ssh {0} true once, and compare the key that it shows"},
    Symptom{"Permission denied",
            "ssh would have to ask for a password. Set up a key (ssh-copy-id {0}), or start ssh-agent and "
            "ssh-add"},
    Symptom{"Too many authentication failures",
            "ssh offers it too many keys. Name one: IdentityFile and "
            "IdentitiesOnly in ~/.ssh/config"},
    Symptom{"Could not resolve hostname",
            "no address is known for this name. Correct it, or add a Host to "
            "~/.ssh/config"},
    Symptom{"Connection refused", "it runs no ssh server on this port"},
    Symptom{"timed out", "it does not answer on the network"},
    Symptom{"No route to host", "it does not answer on the network"},
    Symptom{kTurnedAway,
            "its ssh server closed each of four connections at once. Try again later; if this happens often, "
            "ask its admin to raise MaxStartups in sshd_config"},
};

std::string meaning_of(const LabHost& host, std::string_view errors) {
  for (const Symptom& each : kSymptoms)
    if (errors.contains(each.said)) return fmt::format(fmt::runtime(each.meaning), host.name);
  return fmt::format("ssh could not connect. Try: ssh {} true", host.name);
}

}  // namespace

SshProgram ssh_program(std::string_view text) {
  SshProgram ssh;
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    if (space != 0) words.emplace_back(text.substr(0, space));
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  if (!words.empty()) ssh.words = std::move(words);
  return ssh;
}

namespace {

// Up to the name of the host.
sys::Command command_to(const SshProgram& ssh, const LabHost& host, bool terminal,
                        const std::vector<std::string>& more) {
  sys::Command command{.program = ssh.words.front()};
  command.arguments.assign(ssh.words.begin() + 1, ssh.words.end());
  // Several connections may run at once. So none may ask the user, none may take another command
  // than ours, and none may forward a port that another one has forwarded.
  for (const std::string& option :
       {std::string("BatchMode=yes"), fmt::format("ConnectTimeout={}", ssh.connect_timeout.count()),
        std::string("RemoteCommand=none"), std::string("ClearAllForwardings=yes")}) {
    command.arguments.emplace_back("-o");
    command.arguments.push_back(option);
  }
  for (const std::string& option : more) {
    command.arguments.emplace_back("-o");
    command.arguments.push_back(option);
  }
  command.arguments.emplace_back(terminal ? "-tt" : "-T");
  command.arguments.emplace_back("--");
  command.arguments.push_back(host.name);
  return command;
}

}  // namespace

sys::Command ssh_command(const SshProgram& ssh, const LabHost& host, bool terminal,
                         const std::vector<std::string>& more) {
  sys::Command command = command_to(ssh, host, terminal, more);
  command.arguments.push_back(fmt::format("{} __envoy", host.program));
  return command;
}

sys::Command ssh_settings(const SshProgram& ssh, const LabHost& host) {
  sys::Command command = command_to(ssh, host, false, {});
  command.arguments.insert(command.arguments.end() - 2, "-G");
  return command;
}

sys::Command ssh_call(const SshProgram& ssh, const LabHost& host, std::string_view words) {
  sys::Command command = command_to(ssh, host, false, {});
  command.arguments.push_back(fmt::format("{} {}", host.program, words));
  // Else ssh would take what comes after, of a script that is read from its standard input.
  command.arguments.insert(command.arguments.end() - 3, "-n");
  return command;
}

std::string_view last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

bool is_turned_away(const ProcessEnd& ending, std::string_view errors) {
  return ending == ProcessEnd{.exit_status = kOwnError} && errors.contains(kTurnedAway) &&
         !errors.contains("timed out");
}

bool may_do_better_alone(const ProcessEnd& ending, std::string_view errors) {
  if (ending.signal != 0) return true;
  return ending.exit_status == kOwnError &&
         std::ranges::none_of(kSymptoms, [&](const Symptom& each) { return errors.contains(each.said); });
}

Error why_no_input(const LabHost& host) {
  return {ErrorCode::failure,
          fmt::format("ssh passes nothing on to it. Look for StdinNull or ForkAfterAuthentication in "
                      "~/.ssh/config, and set it to no for Host {}",
                      host.name)};
}

Error why_no_envoy(const LabHost& host, const ProcessEnd& ending, std::string_view errors,
                   std::string_view output) {
  std::string said = printable(last_line(errors));
  // A login shell that lets nobody in says so there.
  if (said.empty()) said = printable(last_line(output));
  const std::string quoted = said.empty() ? "" : fmt::format(" ({})", said);
  if (ending.signal == 0 && ending.exit_status == kOwnError)
    return {ErrorCode::failure, meaning_of(host, errors) + quoted};
  if (ending.signal == 0 && ending.exit_status == kNoSuchCommand)
    return {
        ErrorCode::failure,
        fmt::format("there is no {0} for a shell without a terminal. Install Berth there, or name its path: "
                    "{{ name = \"{1}\", program = \"/path/of/berth\" }} in hosts{2}",
                    host.program, host.name, quoted),
        ENOENT};
  if (ending.signal == 0 && ending.exit_status == kUsage)
    return {ErrorCode::failure,
            fmt::format("its Berth is too old for --anywhere. Install the version that is here{}", quoted)};
  return {ErrorCode::failure, fmt::format("{0} there ended with {1}{2}. Try: ssh {3} {0} version",
                                          host.program, sys::to_text(ending), quoted, host.name)};
}

}  // namespace berth::hosts
