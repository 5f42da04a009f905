#include "berth/lab_queue/etcd_access.h"

#include <sys/un.h>

#include "berth/base/fail.h"
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
    return fail(ErrorCode::usage,
                "--store {}: anybody on the network could read and change the queue of the lab; let "
                "etcd speak https, and name its authority with --store-ca",
                url_of(peer));
  return peer;
}

}  // namespace

Result<std::optional<EtcdAccess>> etcd_access(const http::StoreSettings& settings,
                                              const std::string& hostname) {
  if (settings.urls.empty()) {
    if (settings == http::StoreSettings{}) return std::nullopt;
    return fail(ErrorCode::usage, "which store? --store-socket and the like need --store URL");
  }
  EtcdAccess access;
  for (const std::string& url : settings.urls) {
    BERTH_LET(auto member, member_of_store(url, settings));
    access.members.push_back(std::move(member));
  }
  if (settings.user.empty() != settings.password_file.empty())
    return fail(ErrorCode::usage,
                "--store-user and --store-password-file belong together: give both or neither");
  access.user = settings.user;
  access.password_file = settings.password_file;
  access.socket = settings.socket.empty() ? std::string(http::kDefaultStoreSocket) : settings.socket;
  if (access.socket.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::usage, "--store-socket {}: the path is too long for a socket", access.socket);
  access.name = settings.name.empty() ? hostname : settings.name;
  if (const auto fit = check_host_name(access.name); !fit)
    return fail(ErrorCode::usage, "--store-name: {}", fit.error().message);
  return access;
}

}  // namespace berth::lab_queue
