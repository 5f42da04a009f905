#include "berth/hosts/ssh.h"

#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/own_folder.h"
#include "berth/sys/process.h"

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

// For a command on another machine, the login takes most of the time. So a connection is kept for a
// while and serves the next commands. ssh itself keeps it (ControlMaster): if anything is wrong
// with it, ssh makes another one. Whoever can open its socket can do on the host all that the user
// can. So the socket is in a folder that only the user can open.

namespace {

// ssh binds the socket under the name with a dot and 16 letters more, and then renames it.
constexpr std::size_t kAddedBySsh = 17;
constexpr std::size_t kLongestSocket = sizeof(sockaddr_un::sun_path) - 1 - kAddedBySsh;

struct Setting {
  std::string_view name;
  std::string_view usual;  ///< what ssh does without a word about it
};
// The user shares connections, and knows why and how.
constexpr std::array kSharing{Setting{"controlmaster", "false"}, Setting{"controlpath", "none"},
                              Setting{"controlpersist", "no"}};
// A connection has these from the login that made it. A later command over a kept connection would
// use those of an earlier login.
constexpr std::array kOfOneLogin{Setting{"forwardagent", "no"}, Setting{"forwardx11", "no"},
                                 Setting{"gssapidelegatecredentials", "no"}, Setting{"tunnel", "false"}};

std::optional<std::string_view> value_of(std::string_view settings, std::string_view name) {
  while (!settings.empty()) {
    const std::size_t end = std::min(settings.find('\n'), settings.size());
    const std::string_view line = settings.substr(0, end);
    settings.remove_prefix(std::min(end + 1, settings.size()));
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ')
      return line.substr(name.size() + 1);
  }
  return std::nullopt;
}

bool are_usual(std::string_view settings, std::span<const Setting> these) {
  return std::ranges::all_of(these, [&](const Setting& each) {
    return value_of(settings, each.name).value_or(each.usual) == each.usual;
  });
}

bool is_for_user_alone(const std::string& folder) {
  struct stat found{};
  return ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
         (found.st_mode & 0077U) == 0;
}

// A user who can write in the folder above could put another one in its place.
bool is_written_by_user_alone(const std::string& folder) {
  struct stat found{};
  return ::stat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
         (found.st_mode & 0022U) == 0;
}

std::string folder_below(const std::string& above, std::string_view name) {
  if (!is_written_by_user_alone(above)) return "";
  std::string folder = fmt::format("{}/{}", above, name);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return "";
  return is_for_user_alone(folder) ? folder : "";
}

struct Asker {
  sys::Descriptor socket{};
  int error = 0;  ///< 0: somebody listens there; else why not, as errno has it
};

Asker connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {.error = ENAMETOOLONG};
  path.copy(address.sun_path, path.size());
  Asker asker{sys::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  const int socket = asker.socket.get();
  if (!asker.socket || ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    asker.error = errno;
  return asker;
}

/// A message to an ssh that keeps a connection (PROTOCOL.mux of OpenSSH): two numbers, after their
/// length.
std::string to_keeper(std::uint32_t first, std::uint32_t second) {
  std::string message;
  for (const std::uint32_t each : {std::uint32_t{8}, first, second})
    for (const unsigned shift : {24U, 16U, 8U, 0U}) message += static_cast<char>(each >> shift & 0xFFU);
  return message;
}

// ssh gives a socket that it makes a name with a dot, and listens a moment later. A crash leaves
// that name.
bool is_being_made(const std::string& path, std::string_view name) {
  constexpr std::time_t kMoment = 60;
  struct stat found{};
  return name.contains('.') && (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode) ||
                                found.st_mtime > std::time(nullptr) - kMoment);
}

}  // namespace

std::optional<KeptConnection> kept_connection(std::string_view settings, const std::string& folder,
                                              std::string_view machine) {
  if (settings.empty() || folder.empty()) return std::nullopt;
  if (!are_usual(settings, kSharing) || !are_usual(settings, kOfOneLogin)) return std::nullopt;
  // A user has few hosts, and nobody else chooses what is hashed.
  KeptConnection kept{.socket = fmt::format("{}/{:016x}", folder, fnv_hash(machine, fnv_hash(settings)))};
  // ssh would read a sign of its own in the path.
  if (kept.socket.size() > kLongestSocket || kept.socket.find_first_of("% \"") != std::string::npos)
    return std::nullopt;
  kept.options = {"ControlMaster=auto", fmt::format("ControlPath={}", kept.socket), "ControlPersist=60"};
  // A network that is gone ends it within 15 s, where the user has not said otherwise.
  if (value_of(settings, "serveraliveinterval").value_or("0") == "0")
    kept.options.insert(kept.options.end(), {"ServerAliveInterval=5", "ServerAliveCountMax=2"});
  return kept;
}

std::string folder_of_kept() {
  const std::string runtime(sys::variable("XDG_RUNTIME_DIR"));
  if (!runtime.empty()) return runtime.starts_with('/') ? folder_below(runtime, "berth") : "";
  const auto state = sys::state_folder();
  if (!state) return "";
  const std::string above = fmt::format("{}/berth", *state);
  // Others may read on the way, and may not write. A home of another user stays as it is.
  if (!sys::is_safe_from_others(above)) return "";
  (void)sys::make_folders(above);  // whether it is there shows next
  if (!sys::is_safe_from_others(above).value_or(false)) return "";
  return folder_below(above, "ssh");
}

bool is_there(const KeptConnection& kept) {
  const int error = connect_to(kept.socket).error;
  return error == 0 || error == EAGAIN;  // many ask at once
}

void end_kept(const KeptConnection& kept) {
  constexpr std::uint32_t kHello = 1;
  constexpr std::uint32_t kVersion = 4;
  constexpr std::uint32_t kTerminate = 0x10000005;
  const Asker asker = connect_to(kept.socket);
  if (asker.error != 0) return;
  const std::string message = to_keeper(kHello, kVersion) + to_keeper(kTerminate, 0);
  (void)sys::write_without_signal(asker.socket.get(), message.data(), message.size());
  // It reads nothing of somebody who has gone before it has greeted.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::array<char, 64> answer{};
  for (;;) {
    pollfd polled{asker.socket.get(), POLLIN, 0};
    if (::poll(&polled, 1, sys::poll_timeout(until)) <= 0) return;
    if (::read(asker.socket.get(), answer.data(), answer.size()) <= 0) return;
  }
}

void sweep_kept(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) return;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name(entry->d_name);
    const std::string path = fmt::format("{}/{}", folder, name);
    if (!is_being_made(path, name) && connect_to(path).error == ECONNREFUSED) ::unlink(path.c_str());
  }
}

}  // namespace berth::hosts
