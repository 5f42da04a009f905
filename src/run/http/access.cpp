#include "berth/http/access.h"

#include <algorithm>

#include "berth/base/text_match.h"

namespace berth::http {
namespace {

/// Takes as long for a wrong token as for the right one, so that it cannot be guessed letter by
/// letter. Its length is no secret.
bool is_same_secret(std::string_view given, std::string_view secret) {
  if (given.size() != secret.size()) return false;
  volatile unsigned char differences = 0;
  for (std::size_t i = 0; i < secret.size(); ++i)
    differences = static_cast<unsigned char>(differences | (given[i] ^ secret[i]));
  return differences == 0;
}

}  // namespace

bool may_ask(const HttpRequest& request, const AccessRule& access) {
  constexpr std::string_view kScheme = "bearer ";  // in any case of letters
  if (access.token.empty()) return true;
  return lowered(request.authorization.substr(0, kScheme.size())) == kScheme &&
         is_same_secret(request.authorization.substr(kScheme.size()), access.token);
}

bool is_own_name(std::string_view host, const std::vector<std::string>& known) {
  if (host.empty()) return true;  // no browser leaves it out
  const bool bracketed = host.starts_with('[');
  const std::string name = lowered(host.substr(0, bracketed ? host.find(']') : host.rfind(':')));
  if (bracketed || name == "localhost") return true;
  if (std::ranges::any_of(known, [&](const std::string& each) { return lowered(each) == name; })) return true;
  return !name.empty() && name.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_open_to_all(std::string_view path) {
  return path == "/healthz" || path == "/readyz";
}

}  // namespace berth::http
