#include "berth/net/http_head.h"

#include <fmt/format.h>

#include <netinet/in.h>

#include <algorithm>
#include <iterator>

namespace berth::net {
namespace {

const boost::system::error_category& kHttpErrors =
    boost::beast::http::make_error_code(boost::beast::http::error::end_of_stream).category();

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

http::HttpRequest request_of(const Header& header) {
  return {.method = view(header.method_string()),
          .target = view(header.target()),
          .host = view(header[boost::beast::http::field::host]),
          .authorization = view(header[boost::beast::http::field::authorization]),
          .if_none_match = view(header[boost::beast::http::field::if_none_match])};
}

bool is_ambiguous(const Header& header) {
  const auto hosts = header.equal_range(boost::beast::http::field::host);
  const auto count = std::distance(hosts.first, hosts.second);
  constexpr unsigned kHostIsNeeded = 11;  // HTTP/1.1
  if (count > 1 || (count == 0 && header.version() >= kHostIsNeeded)) return true;
  const auto codings = header.equal_range(boost::beast::http::field::transfer_encoding);
  if (codings.first == codings.second) return false;
  const bool is_chunked =
      std::next(codings.first) == codings.second && boost::beast::iequals(codings.first->value(), "chunked");
  return !is_chunked || header.count(boost::beast::http::field::content_length) > 0;
}

std::string address_key(const boost::asio::generic::stream_protocol::endpoint& from) {
  constexpr std::size_t kNetworkBytes = 8;
  if (from.data()->sa_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(from.data());
    const auto* bytes = reinterpret_cast<const char*>(six->sin6_addr.s6_addr);
    // An address of IPv4 in that form is itself.
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) return {bytes + 12, 4};
    return {bytes, kNetworkBytes};
  }
  if (from.data()->sa_family != AF_INET) return {};
  const auto* four = reinterpret_cast<const sockaddr_in*>(from.data());
  return {reinterpret_cast<const char*>(&four->sin_addr), sizeof four->sin_addr};
}

bool takes_gzip(const Header& header) {
  for (const auto& coding :
       boost::beast::http::ext_list(header[boost::beast::http::field::accept_encoding])) {
    if (view(coding.first) != "gzip") continue;
    // "gzip;q=0" is a refusal.
    return std::ranges::all_of(coding.second, [](const auto& parameter) {
      return parameter.first != "q" ||
             view(parameter.second).find_first_not_of("0.") != std::string_view::npos;
    });
  }
  return false;
}

std::string head_of(const http::Page& page, const Sending& sending) {
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nServer: berth\r\nX-Content-Type-Options: nosniff\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n",
      page.status,
      view(boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(page.status))));
  // Else to be asked about each time, and then often answered with 304.
  head += page.is_forever ? "Cache-Control: public, max-age=31536000, immutable\r\n"
                          : "Cache-Control: no-cache\r\n";
  head += "Vary: Accept-Encoding\r\n";
  if (!page.tag.empty()) head += fmt::format("ETag: W/{}\r\n", page.tag);
  head += page.more_headers;
  if (page.status != 304) {
    head += fmt::format("Content-Type: {}\r\n", page.type);
    if (sending.is_packed) head += "Content-Encoding: gzip\r\n";
    if (sending.length) head += fmt::format("Content-Length: {}\r\n", *sending.length);
  }
  head += sending.keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
  return head;
}

std::optional<http::Page> refusal_of(const boost::system::error_code& error) {
  if (error.category() != kHttpErrors || error == boost::beast::http::error::end_of_stream)
    return std::nullopt;
  if (error == boost::beast::http::error::header_limit || error == boost::beast::http::error::buffer_overflow)
    return http::refusal(431, fmt::format("the header is longer than {} bytes", kMostHeaderBytes));
  if (error == boost::beast::http::error::body_limit) return http::refusal(413, "a request has no body here");
  return http::refusal(400, "this is no HTTP request: " + error.message());
}

}  // namespace berth::net
