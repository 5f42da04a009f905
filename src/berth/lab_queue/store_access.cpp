#include "berth/lab_queue/store_access.h"

#include <sys/un.h>

#include <fmt/format.h>

#include "berth/request/lab_host.h"

namespace berth::lab_queue {
namespace {

Result<http::Peer> member_of_store(const std::string& url, const http::StoreSettings& settings) {
  BERTH_LET(auto peer, http::peer_from_url(url));
  peer.is_store = true;
  peer.authorities = settings.ca_file;
  peer.certificate = settings.cert_file;
  peer.key = settings.key_file;
  if (peer.certificate.empty() != peer.key.empty())
    return fail(ErrorCode::usage, "--store-cert and --store-key belong together: give both or neither");
  if (!check(peer))
    return fail(
        ErrorCode::usage,
        fmt::format("--store {}: anybody on the network could read and change the line of the lab; let "
                    "etcd speak https, and name its authority with --store-ca",
                    url_of(peer)));
  return peer;
}

}  // namespace

Result<std::optional<StorePlace>> store_place(const http::StoreSettings& settings,
                                              const std::string& hostname) {
  if (settings.urls.empty()) {
    if (settings == http::StoreSettings{}) return std::nullopt;
    return fail(ErrorCode::usage, "which store? --store-socket and the like need --store URL");
  }
  StorePlace place;
  for (const std::string& url : settings.urls) {
    BERTH_LET(auto member, member_of_store(url, settings));
    place.members.push_back(std::move(member));
  }
  if (settings.user.empty() != settings.password_file.empty())
    return fail(ErrorCode::usage,
                "--store-user and --store-password-file belong together: give both or neither");
  place.user = settings.user;
  place.password_file = settings.password_file;
  place.socket = settings.socket.empty() ? std::string(http::kDefaultStoreSocket) : settings.socket;
  if (place.socket.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::usage,
                fmt::format("--store-socket {}: the path is too long for a socket", place.socket));
  place.name = settings.name.empty() ? hostname : settings.name;
  if (const auto fit = check_host_name(place.name); !fit)
    return fail(ErrorCode::usage, fmt::format("--store-name: {}", fit.error().message));
  return place;
}

}  // namespace berth::lab_queue
