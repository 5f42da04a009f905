#include "berth/http/settings.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "berth/base/text.h"
#include "berth/sys/file.h"

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

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;

bool is_host(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 ||
                        std::string_view("-._:%").find(static_cast<char>(c)) != std::string_view::npos);
  });
}

bool is_path(std::string_view text) {
  return std::ranges::all_of(text,
                             [](unsigned char c) { return c > ' ' && c < 0x7f && c != '?' && c != '#'; });
}

bool is_this_machine(const Peer& peer) {
  if (!peer.socket.empty() || peer.host == "localhost") return true;
  const auto address = tcp_address(fmt::format("[{}]:{}", peer.host, peer.port));
  return address && address->loopback;
}

bool is_bracketed(std::string_view host) {
  return host.find(':') != std::string_view::npos;
}

/// "node01:8420", "[::1]", "node01".
bool read_authority(std::string_view text, Peer& peer) {
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  std::string_view port;
  if (text.starts_with('[')) {
    if (bracket == std::string_view::npos) return false;
    peer.host = text.substr(1, bracket - 1);
    port = text.substr(bracket + 1);
    if (!is_bracketed(peer.host)) return false;
  } else {
    const std::size_t colon = text.find(':');
    peer.host = text.substr(0, colon);
    if (colon != std::string_view::npos) port = text.substr(colon);
  }
  if (!is_host(peer.host)) return false;
  if (port.empty()) return true;
  port.remove_prefix(1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), peer.port);
  return error == std::errc() && end == port.data() + port.size() && peer.port != 0;
}

}  // namespace

Result<Peer> peer_from_url(std::string_view url) {
  const auto wrong =
      fail(ErrorCode::usage, "'{}' must be a URL like http://node01:8420 or https://node01:8420",
           url.find('@') == std::string_view::npos ? url : "…@…");
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  Peer peer;
  std::string_view rest = url;
  if (rest.starts_with(kUnix) && rest.size() > kUnix.size()) {
    peer.socket = rest.substr(kUnix.size());
    peer.host = "localhost";
    return peer;
  }
  if (rest.starts_with(kPlain)) {
    rest.remove_prefix(kPlain.size());
    peer.port = kHttpPort;
  } else if (rest.starts_with(kTls)) {
    rest.remove_prefix(kTls.size());
    peer.port = kHttpsPort;
    peer.tls = true;
  } else {
    return wrong;
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view path = rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!read_authority(rest.substr(0, slash), peer) || !is_path(path)) return wrong;
  peer.prefix = path;
  return peer;
}

std::string url_of(const Peer& peer) {
  if (!peer.socket.empty()) return fmt::format("{}{}", kUnix, peer.socket);
  const bool bracketed = is_bracketed(peer.host);
  const bool usual = peer.port == (peer.tls ? kHttpsPort : kHttpPort);
  return fmt::format("{}://{}{}{}{}{}", peer.tls ? "https" : "http", bracketed ? "[" : "", peer.host,
                     bracketed ? "]" : "", usual ? "" : fmt::format(":{}", peer.port), peer.prefix);
}

Result<void> check(const Peer& peer) {
  if (peer.certificate.empty() != peer.key.empty())
    return fail(ErrorCode::usage, "a certificate and its key belong together: give both or neither");
  if (peer.tls || !peer.token.empty() || peer.insecure || is_this_machine(peer)) return {};
  return fail(ErrorCode::usage,
              "not asked: {} is plain HTTP over the network, where anybody could answer in its place. "
              "Let it speak https, or give both a token",
              url_of(peer));
}

}  // namespace berth::http
