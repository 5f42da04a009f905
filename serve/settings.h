#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/source/source.h"

namespace berth::serve {

inline constexpr std::string_view kDefaultAddress = "127.0.0.1:8420";

/// What an admin says, on the command line or in the file.
struct Settings {
  std::vector<std::string> listen;  ///< ADDRESS:PORT; empty: kDefaultAddress
  std::string socket;               ///< path of a Unix socket, "" for none
  std::string token_file;
  std::string tls_certificate;  ///< file of the chain
  std::string tls_key;
  std::string tls_clients;  ///< file of the authorities whose certificates let a client in
  bool insecure = false;
  std::int64_t every_s = 1;
  std::int64_t patience_s = 10;  ///< for a client to send the whole of a request, or to take an answer
  std::string history_file;      ///< "": where the system or the user keeps what programs remember
  bool no_history = false;
  source::SourceKind source = source::SourceKind::automatic;
};

/// An address as numbers: a name could come to mean another machine.
struct TcpAddress {
  std::string host;
  std::uint16_t port = 0;
  bool loopback = false;
};
/// "127.0.0.1:8420", "[::1]:8420", "0.0.0.0:0". Error: `usage`.
Result<TcpAddress> tcp_address(std::string_view text);

/// Error: `usage`, when the settings contradict each other or would let anybody on the network in.
Result<void> check(const Settings& settings);

/// The one line of the file. Error: `failure`; also when others than its owner and group may read it.
Result<std::string> read_token(const std::string& path);

}  // namespace berth::serve
