#include "berth/http/answer.h"

#include <doctest/doctest.h>

namespace berth::http::answer_test {
namespace {

Published published() {
  Published published;
  published.pages["/a"] = make_page(200, "text/plain", "text");
  published.pages["/broken"] = make_page(503, "text/plain", "why");
  published.pages["/healthz"] = make_page(200, "text/plain", "ok");
  published.questions["/question"] = [](const Parameters& parameters) {
    return make_page(200, "text/plain", parameters.empty() ? "" : parameters.begin()->second);
  };
  published.streams["/events"] = {};
  return published;
}

const Site& site() {
  static const Site site{.files = {{"/", make_page(200, "text/html", "page")}},
                         .services = {{"/own", [](const Call&, const Reply&) {}},
                                      {"/folder/", [](const Call&, const Reply&) {}},
                                      {"/folder/deeper/", [](const Call&, const Reply&) {}}}};
  return site;
}

HttpRequest get(std::string_view target) {
  return {.method = "GET", .target = target, .host = "localhost", .authorization = "", .if_none_match = ""};
}

int status(const HttpRequest& request, const AccessRule& access = {}) {
  const Answer answered = answer(request, access, site(), published());
  const Page* page = std::get_if<Page>(&answered);
  return page == nullptr ? 0 : page->status;
}

std::string text(std::string_view target) {
  const Answer given = answer(get(target), {}, site(), published());
  if (const auto* question = std::get_if<Question>(&given)) return *question->ask(question->parameters).text;
  return *std::get<Page>(given).text;
}

TEST_CASE("a path is found whatever stands after its question mark") {
  CHECK(text("/a?b=c") == "text");
  CHECK(status(get("/a/")) == 404);
  CHECK(status(get("")) == 404);
}

TEST_CASE("only what is unchanged and whole is answered with 304") {
  HttpRequest request = get("/a");
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
  const AccessRule access{.token = "0123456789abcdef", .checks_host = false};
  HttpRequest request = get("/a");
  CHECK(status(request, access) == 401);
  CHECK(status(get("/none"), access) == 401);
  CHECK(status(get("/events"), access) == 401);
  CHECK(status(get("/question"), access) == 401);
  CHECK(status(get("/own"), access) == 401);
  CHECK(status(get("/healthz"), access) == 200);
  CHECK(status(get("/"), access) == 200);
  request.authorization = "Bearer 0123456789abcdef";
  CHECK(status(request, access) == 200);
  request.authorization = "bearer 0123456789abcdef";
  CHECK(status(request, access) == 200);
  request.authorization = "Bearer 0123456789abcdeF";
  CHECK(status(request, access) == 401);
  request.authorization = "Bearer 0123456789abcde";
  CHECK(status(request, access) == 401);
}

TEST_CASE("a name that a foreign page may have made is refused") {
  for (const std::string_view own :
       {"localhost", "localhost:80", "127.0.0.1:80", "10.0.0.7", "[::1]:80", ""}) {
    HttpRequest request = get("/a");
    request.host = own;
    CHECK_MESSAGE(status(request) == 200, own);
  }
  for (const std::string_view foreign :
       {"evil.example", "evil.example:80", "1.2.3.4.evil:80", "localhost.evil", ":80"}) {
    HttpRequest request = get("/a");
    request.host = foreign;
    CHECK_MESSAGE(status(request) == 421, foreign);
    CHECK(status(request, {.token = "", .checks_host = false}) == 200);
  }
}

TEST_CASE("a name that it is told is its own, in any case of letters, and nothing that looks like it") {
  const AccessRule access{.token = "", .hosts = {"Gpus.lab"}};
  HttpRequest request = get("/a");
  for (const auto& [host, expected] : {std::pair{"gpus.lab", 200},
                                       {"GPUS.LAB:8420", 200},
                                       {"localhost", 200},
                                       {"gpus.lab.evil", 421},
                                       {"lab", 421}}) {
    request.host = host;
    CHECK_MESSAGE(status(request, access) == expected, host);
  }
}

TEST_CASE("a target that is a whole URL says whom it is for") {
  for (const auto& [target, expected] : {std::pair{"http://localhost/a", 200},
                                         {"https://127.0.0.1:8420/a?x=y", 200},
                                         {"http://evil.example/a", 421},
                                         {"http://localhost", 200},
                                         {"http://localhost?x", 200},
                                         {"localhost/a", 404}}) {
    CHECK_MESSAGE(status(get(target)) == expected, target);
  }
}

TEST_CASE("a question gets what stands after the question mark, decoded") {
  CHECK(text("/question?x=a%20b%2bc+d") == "a b+c d");
  CHECK(text("/question?x") == "");
  CHECK(text("/question?&&x=1=2&") == "1=2");
  for (const std::string_view wrong : {"x=%", "x=%2", "x=%zz", "x=1&x=2", "%=1"}) {
    const std::string target = "/question?" + std::string(wrong);
    CHECK_MESSAGE(status(get(target)) == 400, wrong);
  }
}

TEST_CASE("a stream goes on behind the event that a client has") {
  const auto after = [](std::string_view target) {
    return std::get<Subscription>(answer(get(target), {}, site(), published())).after;
  };
  CHECK(after("/events") == 0);
  CHECK(after("/events?since=18446744073709551615") == 18446744073709551615U);
  for (const std::string_view wrong : {"", "-1", "1x", "18446744073709551616"}) {
    const std::string target = "/events?since=" + std::string(wrong);
    CHECK_MESSAGE(status(get(target)) == 400, wrong);
  }
}

TEST_CASE("a service is found by its path or by the nearest folder") {
  const auto service = [](std::string_view target) {
    return std::get<ServiceCall>(answer(get(target), {}, site(), published())).service;
  };
  CHECK(service("/own?a=b") == &site().services.at("/own"));
  CHECK(service("/folder/x") == &site().services.at("/folder/"));
  CHECK(service("/folder/deeper/x/y") == &site().services.at("/folder/deeper/"));
  CHECK(status(get("/owner")) == 404);
  CHECK(status(get("/folder")) == 404);
}

TEST_CASE("nothing is changed by asking") {
  for (const std::string_view method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", ""}) {
    HttpRequest request = get("/a");
    request.method = method;
    CHECK(status(request) == 405);
  }
}

}  // namespace
}  // namespace berth::http::answer_test
