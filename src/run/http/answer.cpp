#include "berth/http/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "berth/base/text_match.h"
#include "berth/view/answers_json.h"

namespace berth::http {
namespace {

bool matches(std::string_view if_none_match, std::string_view tag) {
  return !tag.empty() && (if_none_match == "*" || if_none_match.find(tag) != std::string_view::npos);
}

Page refused(int status, std::string_view message, std::string_view more_headers) {
  Page page = refusal(status, message);
  page.more_headers = more_headers;
  return page;
}

template <class Value>
const Value* find(const ByPath<Value>& map, std::string_view path) {
  const auto found = map.find(path);
  return found == map.end() ? nullptr : &found->second;
}

/// By its own path, or by the nearest folder that has one.
const Service* find_service(const Site& site, std::string_view path) {
  if (const Service* own = find(site.services, path)) return own;
  for (auto slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    if (const Service* folder = find(site.services, path.substr(0, slash + 1))) return folder;
  }
  return nullptr;
}

std::string known_paths(const Site& site, const Published& published) {
  std::set<std::string_view> names;
  const auto add = [&](const auto& map) {
    for (const auto& [name, value] : map) names.insert(name);
  };
  add(published.pages);
  add(published.questions);
  add(published.streams);
  add(site.services);
  return fmt::format("{}", fmt::join(names, " "));
}

std::optional<std::uint64_t> number_from(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Answer subscribe(std::string_view path, const Parameters& parameters) {
  const auto since = parameters.find("since");
  if (since == parameters.end()) return Subscription{std::string(path), 0};
  const auto after = number_from(since->second);
  if (!after) return refusal(400, "since must be the number of the last event that you have");
  return Subscription{std::string(path), *after};
}

/// "http://host/path" says whom it is for in the place of the Host. A proxy is asked so, and
/// whoever asks us may.
HttpRequest in_origin_form(HttpRequest request) {
  const auto scheme = request.target.find("://");
  if (request.target.starts_with('/') || scheme == std::string_view::npos) return request;
  const std::string_view rest = request.target.substr(scheme + 3);
  const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
  request.host = rest.substr(0, path);
  request.target = path < rest.size() && rest[path] == '/' ? rest.substr(path) : "/";
  return request;
}

}  // namespace

Page make_page(int status, std::string_view type, std::string text) {
  std::string tag = fmt::format("\"{:016x}\"", std::hash<std::string_view>()(text));
  return {status, type, std::make_shared<const std::string>(std::move(text)), std::move(tag)};
}

Page refusal(int status, std::string_view message) {
  Page page = make_page(status, kJson, view::error_json({ErrorCode::usage, std::string(message)}));
  page.tag.clear();
  return page;
}

Page unless_unchanged(const Page& page, std::string_view if_none_match) {
  if (page.status != 200 || !matches(if_none_match, page.tag)) return page;
  Page unchanged = page;
  unchanged.status = 304;
  unchanged.text = std::make_shared<const std::string>();
  unchanged.parts.reset();
  return unchanged;
}

Part make_part(std::string text) {
  return {std::make_shared<const std::string>(std::move(text)), nullptr};
}

std::string joined(const Parts& parts) {
  std::string text;
  for (const Part& part : parts) text += *part.text;
  return text;
}

Answer answer(const HttpRequest& asked, const AccessRule& access, const Site& site,
              const Published& published) {
  const HttpRequest request = in_origin_form(asked);
  const auto mark = request.target.find('?');
  const std::string_view path = request.target.substr(0, mark);
  if (access.checks_host && !is_own_name(request.host, access.hosts))
    return refusal(421,
                   "without a token this answers only to an address or localhost as the Host; "
                   "`--host NAME` lets it answer to NAME too");
  if (request.method != "GET" && request.method != "HEAD")
    return refused(405, "everything here is read only: GET or HEAD", "Allow: GET, HEAD\r\n");
  if (const Page* file = find(site.files, path)) return unless_unchanged(*file, request.if_none_match);
  if (!is_open_to_all(path) && !may_ask(request, access))
    return refused(401, "needs the header Authorization: Bearer TOKEN", "WWW-Authenticate: Bearer\r\n");
  if (const Page* page = find(published.pages, path)) return unless_unchanged(*page, request.if_none_match);

  const auto parameters =
      parameters_of(mark == std::string_view::npos ? "" : request.target.substr(mark + 1));
  if (!parameters)
    return refusal(
        400,
        "the part after the question mark must be NAME=VALUE pairs, each name once, with % written as %25");
  if (find(published.streams, path) != nullptr) return subscribe(path, *parameters);
  if (const auto* question = find(published.questions, path))
    return Question{*question, *parameters, std::string(request.if_none_match)};
  const auto plain = path_of(path);
  if (const Service* service = plain ? find_service(site, *plain) : nullptr)
    return ServiceCall{service, {*plain, *parameters}};
  return refusal(404, fmt::format("no such path; there are {}", known_paths(site, published)));
}

}  // namespace berth::http
