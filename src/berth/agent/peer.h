#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/core/error.h"

namespace berth::serve {

/// Where another server of ours answers, and how this one proves who it is.
struct Peer {
  std::string
      socket;  ///< path of the Unix socket of an agent on this machine; "": it is asked over the network
  bool tls = false;
  std::string host;  ///< a name or an address, without brackets
  std::uint16_t port = 0;
  std::string prefix;       ///< put before each path: "/gpus", "" for none
  std::string token;        ///< what it is shown, "" for nothing
  std::string authorities;  ///< file of who may sign its certificate, "": those that this machine trusts
  std::string certificate;  ///< file of the chain that it is shown, "" for none
  std::string key;          ///< file of that one's key
  bool insecure = false;    ///< it may be asked in the clear without a token
  bool is_store = false;    ///< it is etcd, and no server of ours

  bool operator==(const Peer&) const = default;
};

/// What a peer answered, whatever it was.
struct Response {
  int status = 0;
  std::string type{};  ///< of the content
  std::string tag{};   ///< its ETag
  std::string body{};
};

/// "http://node01:8420", "https://[fd00::1]/gpus", "unix:/run/agent.sock". Error: `usage`.
Result<Peer> peer_from_url(std::string_view url);
/// Without what is secret.
std::string url_of(const Peer& peer);

/// Error: `usage`, when whoever is on the network between could pass for the peer, and nobody has said that
/// this is meant; or when certificate and key do not come together.
Result<void> check(const Peer& peer);

}  // namespace berth::serve
