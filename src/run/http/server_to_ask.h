#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/base/error.h"

namespace berth::http {

/// The address of another server of Berth, and how this process proves to it who it is.
struct Peer {
  std::string socket;  ///< path of the Unix socket of an agent on this machine; "": over the network
  bool tls = false;
  std::string host;  ///< a name or an address, without brackets
  std::uint16_t port = 0;
  std::string prefix;       ///< precedes each path: "/gpus"; "": none
  std::string token;        ///< the token to show it; "": none
  std::string authorities;  ///< file of the authorities that may sign its certificate; "": the system's
  std::string certificate;  ///< file of the chain of certificates to show it; "": none
  std::string key;          ///< file of the key of that certificate
  bool insecure = false;    ///< may be asked without TLS and without a token
  bool is_store = false;    ///< it is etcd, and not a server of Berth

  bool operator==(const Peer&) const = default;
};

/// The answer of a peer, with any status.
struct Response {
  int status = 0;
  std::string type{};  ///< of the content
  std::string tag{};   ///< its ETag
  std::string body{};
};

/// "http://node01:8420", "https://[fd00::1]/gpus", "unix:/run/agent.sock". Error: `usage`.
Result<Peer> peer_from_url(std::string_view url);
/// The URL without secrets.
std::string url_of(const Peer& peer);

/// Error: `usage` if somebody on the network could impersonate the peer and `insecure` is not set,
/// or if there is a certificate without a key, or a key without a certificate.
Result<void> check(const Peer& peer);

}  // namespace berth::http
