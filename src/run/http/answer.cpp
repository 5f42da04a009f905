#include "berth/http/answer.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/view/answers_json.h"

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

void Connections::allow(std::size_t most, std::size_t most_of_address) {
  most_ = most;
  most_of_address_ = most_of_address;
}

Connections::Admission Connections::admit(const std::string& address) {
  Admission admission;
  const auto known = addresses_.find(address);
  const bool has_its_share = known != addresses_.end() && known->second.count >= most_of_address_;
  if (has_its_share || is_full()) {
    const Order& waiting = has_its_share ? known->second.waiting : waiting_;
    if (waiting.empty()) return admission;
    admission.evicted = waiting.begin()->second;
    leaves(*admission.evicted);
  }
  const auto place = addresses_.try_emplace(address).first;
  ++place->second.count;
  admission.id = ++last_;
  connections_.emplace(admission.id, Connection{place});
  return admission;
}

void Connections::waits(Id id) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end() || connection->second.since != 0) return;
  connection->second.since = ++last_;
  waiting_.emplace(last_, id);
  connection->second.address->second.waiting.emplace(last_, id);
}

void Connections::is_served(Id id) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end() || connection->second.since == 0) return;
  waiting_.erase(connection->second.since);
  connection->second.address->second.waiting.erase(connection->second.since);
  connection->second.since = 0;
}

void Connections::leaves(Id id) {
  is_served(id);
  const auto connection = connections_.find(id);
  if (connection == connections_.end()) return;
  const auto address = connection->second.address;
  connections_.erase(connection);
  if (--address->second.count == 0) addresses_.erase(address);
}

namespace {

int value_of_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/// %XX is a byte. A + is `plus`: in what forms write it is a blank.
std::optional<std::string> decoded(std::string_view text, char plus) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i] == '+' ? plus : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = value_of_digit(text[i + 1]);
    const int low = value_of_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

std::string encoded(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string safe;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      safe += c;
    } else {
      safe += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return safe;
}

}  // namespace

std::optional<std::string> path_of(std::string_view path) {
  return decoded(path, '+');
}

std::optional<Parameters> parameters_of(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view word = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (word.empty()) continue;
    const auto equals = std::min(word.find('='), word.size());
    const auto name = decoded(word.substr(0, equals), ' ');
    const auto value = decoded(word.substr(std::min(equals + 1, word.size())), ' ');
    if (!name || !value || !parameters.emplace(*name, *value).second) return std::nullopt;
  }
  return parameters;
}

std::string query_of(const Parameters& parameters) {
  std::string query;
  for (const auto& [name, value] : parameters)
    query += fmt::format("{}{}={}", query.empty() ? "?" : "&", encoded(name), encoded(value));
  return query;
}

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
