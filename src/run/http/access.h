#pragma once

#include <string>
#include <string_view>
#include <vector>

// Who may ask a server.
namespace berth::http {

/// The parts of an HTTP request that an answer depends on.
struct HttpRequest {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  std::string_view authorization;
  std::string_view if_none_match;
};

/// Who may ask at the address at which the request came in.
struct AccessRule {
  std::string token;        ///< "": none is asked for
  bool checks_host = true;  ///< the Host must be an address, localhost or one of `hosts`: no page can forge
                            ///< it
  std::vector<std::string> hosts{};

  bool operator==(const AccessRule&) const = default;
};

/// Whether the request has the token, if one is asked for.
bool may_ask(const HttpRequest& request, const AccessRule& access);

/// Whether a Host names this machine. A page of another site reaches this machine's own addresses
/// by a name of its own that it lets point here.
bool is_own_name(std::string_view host, const std::vector<std::string>& known);

/// The paths for load balancers and service managers, which have no token. They show nothing of the
/// machine.
bool is_open_to_all(std::string_view path);

}  // namespace berth::http
