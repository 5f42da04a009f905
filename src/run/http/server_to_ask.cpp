#include "berth/http/server_to_ask.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "berth/base/fail.h"
#include "berth/http/settings.h"

namespace berth::http {
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
