// What comes in at the agent's socket, taken apart as its server does it.
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "berth/net/http_head.h"
#include "targets.h"

namespace berth::fuzz {
namespace {

http::Published made_published() {
  http::Published published;
  published.number = 7;
  published.pages["/healthz"] = http::make_page(200, "text/plain", "ok");
  published.pages["/api/v1/hosts"] = http::make_page(200, http::kJson, "{}");
  published.questions["/api/v1/match"] = [](const http::Parameters& parameters) {
    return http::make_page(200, http::kJson, http::query_of(parameters));
  };
  published.streams["/api/v1/events"] = {};
  return published;
}

void take_answer(const http::HttpRequest& request, const http::AccessRule& access) {
  static const http::Published kPublished = made_published();
  static const http::Site kSite{.files = {{"/", http::make_page(200, "text/html", "page")}},
                                .services = {{"/api/v1/usage", [](const http::Call&, const http::Reply&) {}},
                                             {"/docs/", [](const http::Call&, const http::Reply&) {}}}};
  const http::Answer answered = answer(request, access, kSite, kPublished);
  http::Page page;
  if (const auto* given = std::get_if<http::Page>(&answered)) page = *given;
  if (const auto* question = std::get_if<http::Question>(&answered)) {
    page = question->ask(question->parameters);
    require(http::parameters_of(page.text->substr(page.text->empty() ? 0 : 1)) == question->parameters,
            "parameters that are written are read as they were");
  }
  if (!page.text) return;
  require(!access.token.empty() || page.status != 401, "without a token nobody is asked for one");
  const std::string head =
      net::head_of(page, {.length = page.text->size(), .keep_alive = true, .is_packed = false});
  require(head.find("\r\n\r\n") == head.size() - 4, "an answer has one header");
}

/// How much of `input` the first request takes. 0: it is none, or not whole.
std::size_t read_request(std::string_view input) {
  boost::beast::http::request_parser<boost::beast::http::empty_body> parser;
  parser.header_limit(net::kMostHeaderBytes);
  boost::beast::error_code error;
  std::size_t taken = 0;
  while (!error && !parser.is_header_done() && taken < input.size()) {
    const std::size_t more = parser.put(boost::asio::buffer(input.substr(taken)), error);
    if (more == 0 && !error) return 0;
    taken += more;
  }
  if (error) {
    if (const auto refused = net::refusal_of(error)) require(refused->status >= 400, "a refusal is one");
    return 0;
  }
  if (!parser.is_header_done()) return 0;
  const net::Header& header = parser.get();
  (void)net::takes_gzip(header);
  const http::HttpRequest request = net::request_of(header);
  take_answer(request, {});
  take_answer(request, {.token = "0123456789abcdef", .checks_host = false});
  take_answer(request, {.token = "", .checks_host = true, .hosts = {"gpus.lab"}});
  const bool has_body =
      net::is_ambiguous(header) || parser.chunked() || parser.content_length_remaining().value_or(0) > 0;
  return has_body ? 0 : taken;
}

}  // namespace

void read_http(std::string_view input) {
  while (const std::size_t taken = read_request(input)) input.remove_prefix(taken);
}

}  // namespace berth::fuzz
