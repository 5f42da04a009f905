#include "berth/serve/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "berth/render/json.h"

namespace berth::serve {
namespace {

/// Takes as long for a wrong token as for the right one, so that it cannot be guessed letter by letter. Its
/// length is no secret.
bool is_same_secret(std::string_view given, std::string_view secret) {
  if (given.size() != secret.size()) return false;
  volatile unsigned char differences = 0;
  for (std::size_t i = 0; i < secret.size(); ++i)
    differences = static_cast<unsigned char>(differences | (given[i] ^ secret[i]));
  return differences == 0;
}

bool may_ask(const Request& request, const Door& door) {
  constexpr std::string_view kScheme = "Bearer ";
  if (door.token.empty()) return true;
  return request.authorization.starts_with(kScheme) &&
         is_same_secret(request.authorization.substr(kScheme.size()), door.token);
}

/// A page of another site reaches this machine's own addresses by a name of its own that it lets point here.
bool is_own_name(std::string_view host) {
  if (host.empty()) return true;  // no browser leaves it out
  const bool bracketed = host.starts_with('[');
  const std::string_view name = host.substr(0, bracketed ? host.find(']') : host.rfind(':'));
  if (bracketed || name == "localhost") return true;
  return !name.empty() && name.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// Those that a load balancer or a service manager asks, which has no token. They tell nothing of the
/// machine.
bool is_open_to_all(std::string_view path) {
  return path == "/healthz" || path == "/readyz";
}

bool matches(std::string_view if_none_match, std::string_view tag) {
  return !tag.empty() && (if_none_match == "*" || if_none_match.find(tag) != std::string_view::npos);
}

Answer refused(int status, std::string_view message, std::string_view extra_header = "") {
  return {Answer::Kind::page, refusal(status, message), extra_header};
}

}  // namespace

Page make_page(int status, std::string_view type, std::string text) {
  std::string tag = fmt::format("\"{:016x}\"", std::hash<std::string_view>()(text));
  return {status, type, std::make_shared<const std::string>(std::move(text)), std::move(tag)};
}

Page refusal(int status, std::string_view message) {
  Page page = make_page(status, kJson, render::error_json({ErrorCode::usage, std::string(message)}));
  page.tag.clear();
  return page;
}

Answer answer(const Request& request, const Door& door, const Published& published) {
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  if (door.checks_host && !is_own_name(request.host))
    return refused(421, "without a token this answers only to an address or localhost as the Host");
  if (request.method != "GET" && request.method != "HEAD")
    return refused(405, "everything here is read only: GET or HEAD", "Allow: GET, HEAD");
  if (!is_open_to_all(path) && !may_ask(request, door))
    return refused(401, "needs the header Authorization: Bearer TOKEN", "WWW-Authenticate: Bearer");
  if (path == kEventsPath) return {Answer::Kind::event_stream, {}};
  const auto found = published.pages.find(path);
  if (found == published.pages.end()) {
    std::string known(kEventsPath);
    for (const auto& [name, page] : published.pages) known += " " + name;
    return refused(404, fmt::format("no such path; there are {}", known));
  }
  const Page& page = found->second;
  if (page.status == 200 && matches(request.if_none_match, page.tag))
    return {Answer::Kind::page, {304, page.type, make_page(304, page.type, "").text, page.tag}};
  return {Answer::Kind::page, page};
}

}  // namespace berth::serve
