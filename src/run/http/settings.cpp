#include "berth/http/settings.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>

#include "berth/base/fail.h"
#include "berth/sys/file.h"
#include "berth/sys/system_error.h"

namespace berth::http {
namespace {

constexpr std::size_t kShortestToken = 16;
constexpr std::size_t kLongestToken = 1024;

bool is_loopback(const std::string& host, bool& valid) {
  in_addr four{};
  in6_addr six{};
  valid = true;
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == IN_LOOPBACKNET;
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  valid = false;
  return false;
}

}  // namespace

Result<TcpAddress> tcp_address(std::string_view text) {
  const auto wrong =
      fail(ErrorCode::usage, "'{}' must be ADDRESS:PORT in numbers: {}, [::1]:8420, 0.0.0.0:8420", text,
           kDefaultAddress);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  TcpAddress address;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) return wrong;
  address.host = host;
  bool valid = false;
  address.loopback = is_loopback(address.host, valid);
  if (!valid) return wrong;
  return address;
}

std::int64_t interval_s(const Settings& settings) {
  constexpr std::int64_t kOfAgentSeconds = 1;
  constexpr std::int64_t kOfHubSeconds = 5;
  if (settings.every_s != 0) return settings.every_s;
  return settings.hub.is_hub ? kOfHubSeconds : kOfAgentSeconds;
}

bool checks_host(const Settings& settings) {
  const bool is_guarded = !settings.token_file.empty() || !settings.tls_clients.empty();
  return !is_guarded && (!settings.insecure || !settings.hosts.empty());
}

Result<void> check(const Settings& settings) {
  const bool names_agents = !settings.hub.agents.empty() || !settings.hub.agents_file.empty();
  if (settings.hub.is_hub && !names_agents)
    return fail(ErrorCode::usage,
                "--hub needs to know whom to ask: --agents FILE, or --agent URL (`self` is this machine)");
  if (!settings.hub.is_hub && names_agents)
    return fail(ErrorCode::usage, "--agent and --agents are for a hub: add --hub");
  const bool tls = !settings.tls_certificate.empty();
  if (tls != !settings.tls_key.empty())
    return fail(ErrorCode::usage, "--tls-cert and --tls-key belong together: give both or neither");
  if (!settings.tls_clients.empty() && !tls)
    return fail(ErrorCode::usage, "--tls-clients needs TLS: give --tls-cert and --tls-key");
  if (settings.no_history && !settings.history_file.empty())
    return fail(ErrorCode::usage, "--history and --no-history contradict each other: give one of them");
  const bool asks_who = !settings.token_file.empty() || !settings.tls_clients.empty();
  if (settings.own_jobs && !asks_who)
    return fail(ErrorCode::usage,
                "--own-jobs shows what your jobs print, and every user of this machine can ask a server that "
                "wants no token: give --token-file or --tls-clients");
  const bool guarded = asks_who || settings.insecure;
  for (const std::string& text : settings.listen) {
    BERTH_LET(const auto address, tcp_address(text));
    if (address.loopback || guarded) continue;
    return fail(ErrorCode::usage,
                "{} is reached from other machines, and everybody there could read who runs what: give "
                "--token-file or --tls-clients, or allow it with --insecure",
                text);
  }
  return {};
}

Result<std::string> read_secret(const std::string& path, std::string_view what) {
  const std::string doing = fmt::format("reading the {} from {}", what, path);
  const sys::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return sys::fail_errno(doing);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return sys::fail_errno(doing);
  if ((status.st_mode & S_IRWXO) != 0)
    return fail(ErrorCode::failure, "{}: every user may read it; chmod o= {}", doing, path);
  auto text = sys::read_start(file.get(), kLongestToken);
  if (!text) return std::unexpected(context(text.error(), doing));
  while (text->ends_with('\n')) text->pop_back();
  if (text->empty()) return fail(ErrorCode::failure, "{}: it is empty", doing);
  return text;
}

Result<std::string> read_token(const std::string& path) {
  BERTH_LET(auto text, read_secret(path, "token"));
  if (text.size() < kShortestToken || text.size() > kLongestToken ||
      text.find_first_of(" \t\r\n") != std::string::npos) {
    return fail(ErrorCode::failure,
                "reading the token from {}: it must hold one word of {} to {} characters; make one "
                "with: openssl rand -hex 32",
                path, kShortestToken, kLongestToken);
  }
  return text;
}

}  // namespace berth::http
