#include "berth/hub/agents.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace berth::hub::agents_test {
namespace {

/// What is said of a file of this name and text, without the folder that it is in.
std::string fault_of(const std::string& name, const std::string& text) {
  std::string folder = std::filesystem::temp_directory_path() / "berth-agents-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/" + name) << text;
  const auto agents = read_agents({.is_hub = true, .agents = {}, .agents_file = folder + "/" + name});
  std::filesystem::remove_all(folder);
  REQUIRE_FALSE(agents);
  std::string said = agents.error().message;
  folder += "/";
  for (std::size_t at; (at = said.find(folder)) != std::string::npos;) said.erase(at, folder.size());
  return said;
}

TEST_CASE("a file of agents at fault is named with its line") {
  const auto begins = [](const std::string& text, const std::string& words) {
    const std::string said = fault_of("a.toml", text);
    CHECK_MESSAGE(said.starts_with("a.toml:" + words), said);
  };
  begins("[[agent]]\nurl = \"self\"\nurk = 1\n", "3: unknown key 'urk' in [[agent]], did you mean url?");
  begins("insecure = true\n", "1: unknown key 'insecure'; allowed: token-file, ca-file");
  begins("\n[[agent]]\nname = \"x\"\n", "2: [[agent]] needs url = \"https://node01:8420\", or \"self\"");
  begins("agent = 3\n", "1: agents are a list of tables: [[agent]]");
  begins("[[agent]]\nurl = 3\n", "2: url: must be a text in quotes");
  begins("[[agent]]\nurl = \"self\"\ninsecure = \"yes\"\n", "3: insecure: must be true or false");
  begins("[[agent\n", "1: ");
  begins("[[agent]]\nurl = \"node01\"\n", "1: url: 'node01' must be a URL like http://node01:8420");
  // What stands there for a password is told nobody.
  begins("[[agent]]\nurl = \"http://me:secret@node\"\n", "1: url: '…@…' must be a URL");
  begins("[[agent]]\nurl = \"https://n\"\ntoken-file = \"/none\"\n",
         "1: token-file: reading the token from /none: No such file");
  begins("[[agent]]\nurl = \"self\"\nname = \"a\"\n[[agent]]\nurl = \"http://b\"\nname = \"a\"\n",
         "4: name: 'a' is taken by a.toml:1; give another");
  begins("[[agent]]\nurl = \"self\"\nname = \"a/b\"\n", "1: name: 'a/b' must be one word");
  const std::string of_nvgpu = fault_of("a.cfg", "# nodes\nAGENTS = ['self', # here\n]\n");
  CHECK_MESSAGE(of_nvgpu.starts_with("a.cfg:2: AGENTS is of nvgpu; make the file of a hub from it: "
                                     "python -m nvgpu.agents a.cfg"),
                of_nvgpu);
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
