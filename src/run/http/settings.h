#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/source/source.h"

namespace berth::http {

inline constexpr std::string_view kDefaultAddress = "127.0.0.1:8420";

/// How the hub proves to its agents who it is, and how it recognises them.
struct AgentAccess {
  std::string token_file{};
  std::string ca_file{};    ///< the authorities that may sign an agent's certificate; "": the system's
  std::string cert_file{};  ///< the certificate to show the agents
  std::string key_file{};
  bool insecure = false;  ///< they may be asked without TLS and without a token

  bool operator==(const AgentAccess&) const = default;
};

/// The settings of a hub.
struct HubSettings {
  bool is_hub = false;
  std::vector<std::string> agents{};  ///< [NAME=]URL, or "self"
  std::string agents_file{};          ///< TOML
  AgentAccess access{};               ///< for agents without settings of their own
  std::int64_t patience_s = 5;        ///< how long it waits for an agent
};

inline constexpr std::string_view kDefaultStoreSocket = "/run/berth-serve/store.sock";

/// The store in which the requests of the lab stand in one queue.
struct StoreSettings {
  std::vector<std::string> urls{};  ///< of etcd; empty: there is none
  std::string socket{};             ///< for the requests on this machine; "": kDefaultStoreSocket
  std::string name{};               ///< of this machine in the store; "": its hostname
  std::string ca_file{};            ///< of the authorities that may sign etcd's certificate; "": the system's
  std::string cert_file{};          ///< of the certificate that etcd is shown
  std::string key_file{};
  std::string user{};           ///< the user of etcd as whom to ask; "": etcd has no users
  std::string password_file{};  ///< of that user

  bool operator==(const StoreSettings&) const = default;
};

/// The settings of a server, from the command line or the file.
struct Settings {
  std::vector<std::string> listen;  ///< ADDRESS:PORT; empty: kDefaultAddress
  std::string socket;               ///< path of a Unix socket, "" for none
  std::string token_file;
  std::string tls_certificate;  ///< file of the chain
  std::string tls_key;
  std::string tls_clients;  ///< file of the authorities that may sign a client's certificate
  bool insecure = false;
  std::vector<std::string> hosts{};  ///< names that clients may ask for
  std::int64_t every_s = 0;          ///< 0: the default, 1 for an agent and 5 for a hub
  std::int64_t patience_s = 10;      ///< for a client to send the whole of a request, or to take an answer
  std::string history_file;          ///< "": in the state directory of the system or the user
  bool no_history = false;
  bool own_jobs = false;  ///< shows clients the jobs of the user who runs this server, and their output
  source::SourceKind source = source::SourceKind::kAutomatic;
  HubSettings hub;
  StoreSettings store;
};

/// How often the agent looks at its machine, or the hub asks its agents.
std::int64_t interval_s(const Settings& settings);

/// An address as numbers, because a name could later mean another machine.
struct TcpAddress {
  std::string host;
  std::uint16_t port = 0;
  bool loopback = false;
};
/// "127.0.0.1:8420", "[::1]:8420", "0.0.0.0:0". Error: `usage`.
Result<TcpAddress> tcp_address(std::string_view text);

/// Whether the Host of a request must be one of this server's names. That is so if nothing else
/// keeps out the pages of other sites.
bool checks_host(const Settings& settings);

/// Error: `usage` if the settings contradict each other or would let in everybody on the network.
Result<void> check(const Settings& settings);

/// The text of the file without the end of its last line. `what`: the name of the file in errors.
/// Error: `failure`, also if others than its owner and group may read it.
Result<std::string> read_secret(const std::string& path, std::string_view what);
/// The one word of the file. Error: as above, and if the file is not one word, or the word is too
/// short to be secret.
Result<std::string> read_token(const std::string& path);

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
