#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/source/source.h"

namespace berth::serve {

inline constexpr std::string_view kDefaultAddress = "127.0.0.1:8420";

/// How the hub shows its agents who it is, and how it knows them.
struct AgentAccess {
  std::string token_file{};
  std::string ca_file{};    ///< of the authorities that may sign an agent's certificate; "": the system's
  std::string cert_file{};  ///< of the certificate that the agents are shown
  std::string key_file{};
  bool insecure = false;  ///< they may be asked in the clear without a token

  bool operator==(const AgentAccess&) const = default;
};

/// What makes it a hub.
struct HubSettings {
  bool is_hub = false;
  std::vector<std::string> agents{};  ///< [NAME=]URL, or "self"
  std::string agents_file{};          ///< TOML, or of nvgpu's master
  AgentAccess access{};               ///< for agents that do not say it themselves
  std::int64_t patience_s = 5;        ///< with an agent
};

inline constexpr std::string_view kDefaultStoreSocket = "/run/berth-serve/store.sock";

/// The store in which the requests of the lab stand in one line.
struct StoreSettings {
  std::vector<std::string> urls{};  ///< of etcd; empty: there is none
  std::string socket{};             ///< for those who wait on this machine; "": kDefaultStoreSocket
  std::string name{};               ///< of this machine in the store; "": its hostname
  std::string ca_file{};            ///< of the authorities that may sign etcd's certificate; "": the system's
  std::string cert_file{};          ///< of the certificate that etcd is shown
  std::string key_file{};
  std::string user{};           ///< of etcd, as whom it is asked; "": etcd asks nobody who they are
  std::string password_file{};  ///< of that user

  bool operator==(const StoreSettings&) const = default;
};

/// What an admin says, on the command line or in the file.
struct Settings {
  std::vector<std::string> listen;  ///< ADDRESS:PORT; empty: kDefaultAddress
  std::string socket;               ///< path of a Unix socket, "" for none
  std::string token_file;
  std::string tls_certificate;  ///< file of the chain
  std::string tls_key;
  std::string tls_clients;  ///< file of the authorities whose certificates let a client in
  bool insecure = false;
  std::vector<std::string> hosts{};  ///< names that it is asked by
  std::int64_t every_s = 0;          ///< 0: 1 of an agent, 5 of a hub
  std::int64_t patience_s = 10;      ///< for a client to send the whole of a request, or to take an answer
  std::string history_file;          ///< "": where the system or the user keeps what programs remember
  bool no_history = false;
  bool own_jobs = false;  ///< whoever may ask is shown the jobs of the user who runs this, and their output
  source::SourceKind source = source::SourceKind::kAutomatic;
  HubSettings hub;
  StoreSettings store;
};

/// How often machines are looked at or asked.
std::int64_t interval_s(const Settings& settings);

/// An address as numbers: a name could come to mean another machine.
struct TcpAddress {
  std::string host;
  std::uint16_t port = 0;
  bool loopback = false;
};
/// "127.0.0.1:8420", "[::1]:8420", "0.0.0.0:0". Error: `usage`.
Result<TcpAddress> tcp_address(std::string_view text);

/// Whether the Host of a request must be one of its own: where nothing else keeps out the pages of other
/// sites.
bool checks_host(const Settings& settings);

/// Error: `usage`, when the settings contradict each other or would let anybody on the network in.
Result<void> check(const Settings& settings);

/// The text of the file without the end of its last line. `what`: it is called so in errors. Error:
/// `failure`; also when others than its owner and group may read it.
Result<std::string> read_secret(const std::string& path, std::string_view what);
/// The one word of the file. Error: as above, and when it is none, or too short to keep anybody out.
Result<std::string> read_token(const std::string& path);

}  // namespace berth::serve
