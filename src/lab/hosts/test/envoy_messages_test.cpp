#include "berth/hosts/envoy_messages.h"

#include <doctest/doctest.h>

namespace berth::hosts::envoy_messages_test {
namespace {

template <class Message>
Message heard(const std::string& text) {
  const auto message = decode_envoy_message(text);
  if (!message) FAIL(message.error().message);
  const auto* found = std::get_if<Message>(&*message);
  REQUIRE(found != nullptr);
  return *found;
}

TEST_CASE("what the caller asks arrives as it was asked") {
  const EnvoyAsk ask{
      EnvoyMode::offer, "/home/a b", {"sh", "-c", "a\nb \\"}, "uuid", "amd", "berth-1234\n", true, true, true,
      "/data/a b"};
  const auto decoded = decode_envoy_ask(encode(ask));
  if (!decoded) FAIL(decoded.error().message);
  CHECK(*decoded == ask);
  for (const EnvoyMode mode : {EnvoyMode::look, EnvoyMode::offer, EnvoyMode::run, EnvoyMode::call}) {
    EnvoyAsk each;
    each.mode = mode;
    CHECK(decode_envoy_ask(encode(each))->mode == mode);
  }
  CHECK_FALSE(decode_envoy_ask("berth-envoy-ask 1\nerrand=dance\nend\n"));
}

TEST_CASE("what the envoy says arrives as it was said") {
  CHECK(heard<EnvoyHello>(encode(EnvoyHello{"1.2.3"})) == EnvoyHello{"1.2.3"});
  const Offer offer{8, 3, 2, true, "3 of 8 free", 60, false};
  CHECK(heard<Offer>(encode(offer)) == offer);
  const auto report = heard<MachineReport>(encode(MachineReport{"{\"a\": 1}\n", "{}\n"}));
  CHECK(report.listing == "{\"a\": 1}\n");
  CHECK(report.queue == "{}\n");
  const Called called{3, "ended\n", "berth: a\nb\n"};
  CHECK(heard<Called>(encode(called)) == called);
  heard<CommandBegun>(encode(CommandBegun{}));
  heard<Cancelled>(encode(Cancelled{}));
  heard<api::LeaseMessage>(api::encode(api::LeaseMessage(Standing{})));
}

TEST_CASE("another version of what is said is told as such, and noise is no message") {
  CHECK_FALSE(decode_envoy_message("berth-envoy 2\nversion=9\nend\n"));
  for (const char* noise : {"", "hello\n", "end\n", "berth-offer 1\npossible=many\nend\n", "berth-offer 1\n"})
    CHECK_FALSE(decode_envoy_message(noise));
}

TEST_CASE("the words of the caller are told apart") {
  for (const CallerWord word : {CallerWord::join, CallerWord::yes})
    CHECK(decode_caller_word(encode(word)) == word);
  CHECK(decode_caller_word("berth-no 1\nend\n") == std::nullopt);
}

TEST_CASE("a version that a host says is cut where it is read, since people are told it") {
  const auto read = decode_envoy_message(encode(EnvoyHello{std::string(900'000, 'A')}));
  REQUIRE(read);
  CHECK(std::get<EnvoyHello>(*read).version == std::string(64, 'A'));
}

TEST_CASE("the hello is found behind what a login shell prints") {
  const std::string hello = encode(EnvoyHello{"1"});
  CHECK(find_hello(hello) == 0);
  CHECK(find_hello("Welcome\nberth-envoy of the day\n" + hello) == 31);
  CHECK(find_hello("Welcome to berth-envoy 1\n") == std::string::npos);
  CHECK(find_hello("berth-envoy 1") == std::string::npos);
}

TEST_CASE("the end of a command is found in its errors, however they are cut") {
  const std::string token = "berth-0011\n";
  const std::string stream = "one\nberth-0012\nberth-00" + encode(ProcessEnd{3, 9}, token) + "left behind";
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    EndFinder finder(token);
    std::string errors = finder.feed(std::string_view(stream).substr(0, cut));
    errors += finder.feed(std::string_view(stream).substr(cut));
    errors += finder.rest();
    CHECK(errors == "one\nberth-0012\nberth-00left behind");
    CHECK(finder.end() == ProcessEnd{3, 9});
  }
  EndFinder none(token);
  CHECK(none.feed("is berth-001") == "is ");
  CHECK(none.rest() == "berth-001");
  CHECK_FALSE(none.end());
}

TEST_CASE("frames arrive one by one, whole") {
  const Frame frame{FrameKind::input, std::string("a\0b\n", 4)};
  std::string text =
      encode(frame) + encode(Frame{FrameKind::signal, "15"}) + encode(Frame{FrameKind::end_of_input, ""});
  std::string sofar;
  std::vector<Frame> frames;
  for (const char byte : text) {
    sofar += byte;
    const auto taken = take_frame(sofar);
    REQUIRE(taken);
    if (*taken) frames.push_back(**taken);
  }
  REQUIRE(frames.size() == 3);
  CHECK(frames[0].text == frame.text);
  CHECK(frames[1].kind == FrameKind::signal);
  CHECK(frames[1].text == "15");
  CHECK(frames[2].kind == FrameKind::end_of_input);
  std::string bad = "x0000";
  CHECK_FALSE(take_frame(bad));
  std::string huge = "i\xff\xff\xff\xff";
  CHECK_FALSE(take_frame(huge));
}

}  // namespace
}  // namespace berth::hosts::envoy_messages_test
