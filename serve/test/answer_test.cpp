#include "berth/serve/answer.h"

#include <doctest/doctest.h>

namespace berth::serve {
namespace {

Published published() {
  Published published;
  published.pages["/a"] = make_page(200, "text/plain", "text");
  published.pages["/broken"] = make_page(503, "text/plain", "why");
  published.pages["/healthz"] = make_page(200, "text/plain", "ok");
  return published;
}

Request get(std::string_view target) {
  return {.method = "GET", .target = target, .host = "localhost", .authorization = "", .if_none_match = ""};
}

int status(const Request& request, const Door& door = {}) {
  return answer(request, door, published()).page.status;
}

TEST_CASE("a path is found whatever stands after its question mark") {
  CHECK(*answer(get("/a?b=c"), {}, published()).page.text == "text");
  CHECK(status(get("/a/")) == 404);
  CHECK(status(get("")) == 404);
}

TEST_CASE("only what is unchanged and whole is answered with 304") {
  Request request = get("/a");
  const std::string tag = make_page(200, "text/plain", "text").tag;
  request.if_none_match = tag;
  CHECK(status(request) == 304);
  request.if_none_match = "*";
  CHECK(status(request) == 304);
  request.if_none_match = "\"other\"";
  CHECK(status(request) == 200);
  request.target = "/broken";
  request.if_none_match = "*";
  CHECK(status(request) == 503);
}

TEST_CASE("whoever lacks the token learns only whether the agent lives") {
  const Door door{.token = "0123456789abcdef", .checks_host = false};
  Request request = get("/a");
  CHECK(status(request, door) == 401);
  CHECK(status(get("/none"), door) == 401);
  CHECK(status(get(kEventsPath), door) == 401);
  CHECK(status(get("/healthz"), door) == 200);
  request.authorization = "Bearer 0123456789abcdef";
  CHECK(status(request, door) == 200);
  request.authorization = "Bearer 0123456789abcdeF";
  CHECK(status(request, door) == 401);
  request.authorization = "Bearer 0123456789abcde";
  CHECK(status(request, door) == 401);
}

TEST_CASE("a name that a foreign page may have made is refused") {
  for (const std::string_view own :
       {"localhost", "localhost:80", "127.0.0.1:80", "10.0.0.7", "[::1]:80", ""}) {
    Request request = get("/a");
    request.host = own;
    CHECK_MESSAGE(status(request) == 200, own);
  }
  for (const std::string_view foreign :
       {"evil.example", "evil.example:80", "1.2.3.4.evil:80", "localhost.evil", ":80"}) {
    Request request = get("/a");
    request.host = foreign;
    CHECK_MESSAGE(status(request) == 421, foreign);
    CHECK(status(request, {.token = "", .checks_host = false}) == 200);
  }
}

TEST_CASE("nothing is changed by asking") {
  for (const std::string_view method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", ""}) {
    Request request = get("/a");
    request.method = method;
    CHECK(status(request) == 405);
  }
}

}  // namespace
}  // namespace berth::serve
