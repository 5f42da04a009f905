#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/http.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "berth/http/answer.h"

namespace berth::net {

inline constexpr std::uint32_t kMostHeaderBytes = 16U << 10U;

using Header = boost::beast::http::request_header<>;

/// Its views last as long as the header.
http::HttpRequest request_of(const Header& header);
bool takes_gzip(const Header& header);

/// Whether a proxy before us could have understood the header differently: where it ends, or for
/// whom it is.
bool is_ambiguous(const Header& header);
inline constexpr std::string_view kAmbiguous =
    "a request has one Host, and no Transfer-Encoding but chunked, alone";

/// The address by which connections are counted. For IPv6 it is the network, because a machine may
/// have all addresses of its network.
std::string address_key(const boost::asio::generic::stream_protocol::endpoint& from);

/// How an answer is sent.
struct Sending {
  std::optional<std::size_t> length;  ///< nullopt: a stream, which ends with its connection
  bool keep_alive = true;
  bool is_packed = false;
};
/// Status line and header.
std::string head_of(const http::Page& page, const Sending& sending);

/// Why a header could not be read. nullopt: the connection has ended, and there is nobody to tell.
std::optional<http::Page> refusal_of(const boost::system::error_code& error);

}  // namespace berth::net
