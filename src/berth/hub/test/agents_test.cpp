#include "berth/hub/agents.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "berth/hub/nvgpu_file.h"

namespace berth::hub::agents_test {
namespace {

std::string why_not(std::string_view text) {
  const auto file = read_nvgpu_file("m.cfg", text);
  return file ? "" : file.error().message;
}

std::vector<std::string> agents_in(std::string_view text) {
  std::vector<std::string> texts;
  const auto file = read_nvgpu_file("m.cfg", text);
  REQUIRE(file);
  for (const auto& each : file->agents) texts.push_back(each.text);
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("the file of nvgpu's document is read") {
  CHECK(agents_in("# nvgpu_master.cfg\nAGENTS = [\n         'self', # node01 - master\n"
                  "         'http://node02:1080',\n         'http://node03:1080',\n]\n") ==
        Texts{"self", "http://node02:1080", "http://node03:1080"});
}

TEST_CASE("Python's ways to write a list of texts") {
  CHECK(agents_in("") == Texts{"self"});
  CHECK(agents_in("AGENTS=[]") == Texts{});
  CHECK(agents_in("AGENTS = ()\n") == Texts{});
  CHECK(agents_in("AGENTS = (\"a\",)") == Texts{"a"});
  CHECK(agents_in("AGENTS = ['a' 'b', r'c\\d', u\"e\\'f\"]") == Texts{"ab", "c\\d", "e'f"});
  CHECK(agents_in("AGENTS = ['''x\ny''']") == Texts{"x\ny"});
  CHECK(agents_in("AGENTS = \\\n  ['a'\n  # why\n  , 'b']; DEBUG = True\n") == Texts{"a", "b"});
  CHECK(agents_in("'''About\nthis'''\nX = {'a': [1, (2)], \"b\": ']'}\nAGENTS = ['a']\n") == Texts{"a"});
  CHECK(agents_in("AGENTS = ['old']\nAGENTS = ['new']\n") == Texts{"new"});
  CHECK(read_nvgpu_file("m", "TOKEN = 'secret'\n")->token == "secret");
  CHECK(read_nvgpu_file("m", "TOKEN = None\n")->token.empty());
}

TEST_CASE("what is no list of texts is refused with its line") {
  CHECK(why_not("AGENTS = []\n\nimport os\n").starts_with("m.cfg:3: allowed are assignments"));
  CHECK(why_not("AGENTS += ['a']\n").starts_with("m.cfg:1: allowed are"));
  CHECK(why_not("AGENTS = ['a'] + more\n").starts_with("m.cfg:1: allowed are"));
  CHECK(why_not("AGENTS = [\n'a',\nb]\n").starts_with("m.cfg:3: an entry of AGENTS must be a text"));
  CHECK(why_not("AGENTS = ['a\n']\n").starts_with("m.cfg:1: a text has no end"));
  CHECK(why_not("AGENTS = [").starts_with("m.cfg:1: an entry of AGENTS"));
  CHECK(why_not("AGENTS = [f'{x}']").starts_with("m.cfg:1: an entry of AGENTS"));
  CHECK(why_not("TOKEN = 3\n").starts_with("m.cfg:1: TOKEN must be a text"));
  CHECK(why_not("TOKEN = 'a\\r\\nHost: b'\n").starts_with("m.cfg:1: TOKEN must be one word"));
}

TEST_CASE("no text makes the reading of Python hang or break") {
  CHECK(rc::check("ends", [](const std::string& text) { (void)read_nvgpu_file("x", "AGENTS = [" + text); }));
  CHECK(rc::check("ends", [](const std::string& text) { (void)read_nvgpu_file("x", text); }));
}

TEST_CASE("which file is whose is seen by name, and else by what is in it") {
  CHECK(is_nvgpu_file("x.cfg", ""));
  CHECK(is_nvgpu_file("x.py", ""));
  CHECK(!is_nvgpu_file("x.toml", "AGENTS = []"));
  CHECK(is_nvgpu_file("x", "# c\nAGENTS = []"));
  CHECK(!is_nvgpu_file("x", "# AGENTS = []\n[[agent]]\n"));
}

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
  Texts names;
  for (const Agent& each : *agents) names.push_back(each.name);
  CHECK(names == Texts{"127.0.0.1:1", "127.0.0.1:2", "b", "c"});
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
