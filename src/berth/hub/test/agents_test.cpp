#include "berth/hub/agents.h"

#include <doctest/doctest.h>

namespace berth::hub::agents_test {
namespace {

TEST_CASE("what the head of a TOML file says counts for all of its agents that say nothing else") {
  const auto entries =
      agents_from_toml("a.toml",
                       "token-file = '/t'\n[[agent]]\nurl = 'https://a'\n[[agent]]\n"
                       "url = 'http://b'\ntoken-file = '/u'\ninsecure = true\nname = 'bee'\n",
                       {.ca_file = "/ca"});
  REQUIRE(entries);
  CHECK(*entries ==
        std::vector<AgentEntry>{
            {"a.toml:2", "", "https://a", {.token_file = "/t", .ca_file = "/ca"}},
            {"a.toml:4", "bee", "http://b", {.token_file = "/u", .ca_file = "/ca", .insecure = true}}});
}

TEST_CASE("that agents may be asked in the clear is for each agent of a TOML file to say") {
  const auto entries = agents_from_toml("a.toml", "[[agent]]\nurl = 'http://b'\n", {.insecure = true});
  CHECK(!entries->front().access.insecure);
}

TEST_CASE("a word is a URL, with a name or without") {
  CHECK(agent_from_word("http://a/?x=y", {}).name.empty());
  CHECK(agent_from_word("n=http://a", {}).name == "n");
  CHECK(agent_from_word("n=http://a", {}).url == "http://a");
  CHECK(agent_from_word("self", {}).url == "self");
}

TEST_CASE("agents are called by their hosts, with the port where several are on one") {
  const auto agents =
      read_agents({.is_hub = true,
                   .agents = {"http://127.0.0.1:1", "http://127.0.0.1:2", "https://b", "c=https://b:7"},
                   .agents_file = ""});
  REQUIRE(agents);
  std::vector<std::string> names;
  for (const Agent& each : *agents) names.push_back(each.name);
  CHECK(names == std::vector<std::string>{"127.0.0.1:1", "127.0.0.1:2", "b", "c"});
}

TEST_CASE("URLs are read, and written without what is usual") {
  const auto again = [](std::string_view url) {
    const auto peer = http::peer_from_url(url);
    return peer ? url_of(*peer) : "no";
  };
  CHECK(again("http://node01:8420") == "http://node01:8420");
  CHECK(again("http://node01:8420/") == "http://node01:8420");
  CHECK(again("https://node01/gpus/") == "https://node01/gpus");
  CHECK(again("https://node01:443") == "https://node01");
  CHECK(again("http://[fd00::1]:80") == "http://[fd00::1]");
  for (const auto* url :
       {"", "node01", "ftp://a", "http://", "http://a:b", "http://a:0", "http://a:70000", "http://a b",
        "http://a/\r\nX: y", "http://u:p@a", "http://[::1", "http://[x]", "http://a?x"})
    CHECK_MESSAGE(again(url) == "no", url);
}

TEST_CASE("plain HTTP is for this machine, for who has a token, and for who says so") {
  const auto may = [](const char* url, auto change) {
    http::Peer peer = http::peer_from_url(url).value();
    change(peer);
    return check(peer).has_value();
  };
  const auto nothing = [](http::Peer&) {};
  for (const auto* url :
       {"http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:1", "http://localhost", "https://a"})
    CHECK_MESSAGE(may(url, nothing), url);
  for (const auto* url :
       {"http://a", "http://10.0.0.1", "http://127.0.0.1.a", "http://localhost.a", "http://[::2]"})
    CHECK_MESSAGE(!may(url, nothing), url);
  CHECK(may("http://a", [](http::Peer& peer) { peer.token = "t"; }));
  CHECK(may("http://a", [](http::Peer& peer) { peer.insecure = true; }));
  CHECK(!may("https://a", [](http::Peer& peer) { peer.certificate = "c"; }));
}

}  // namespace
}  // namespace berth::hub::agents_test
