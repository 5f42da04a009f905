#include "berth/api/lease_messages.h"

#include <doctest/doctest.h>

#include "berth/request/test/said.h"

namespace berth::api::lease_messages_test {
namespace {

LeaseMessage again(const LeaseMessage& message) {
  auto decoded = decode_message(encode(message));
  if (!decoded) FAIL(decoded.error().message);
  return std::move(*decoded);
}

TEST_CASE("what a host asks for arrives as it was asked") {
  LeaseAsk ask{"1.2.3",
               {},
               "a note\nof two lines",
               std::chrono::milliseconds(1500),
               true,
               {"CUDA_VISIBLE_DEVICES=2,3", "BERTH_LEASE"},
               {"0000000000000007"}};
  ask.request.count = 3;
  ask.request.conditions.push_back(*Expression::parse("name~\"A 100\" and free>=20G"));
  ask.request.devices = {"0", "GPU-1"};
  ask.request.exclude = {"7"};
  ask.request.admitted = {"GPU-b", "GPU-a"};
  ask.request.order = Order::listed;
  ask.request.seed = 7;
  ask.request.shared = true;
  ask.request.promise_bytes = 1ULL << 40;
  ask.request.allowed_processes = 2;
  ask.request.time_s = 7200;
  ask.request.yield_s = 30;
  const auto heard = decode_ask(encode(ask));
  if (!heard) FAIL(heard.error().message);
  CHECK(heard->version == ask.version);
  CHECK(heard->note == ask.note);
  CHECK(heard->wait == ask.wait);
  CHECK(heard->ignore_mask);
  CHECK(heard->variables == ask.variables);
  CHECK(heard->beside == ask.beside);
  CHECK(heard->request.count == 3);
  CHECK(heard->request.conditions.front().text() == ask.request.conditions.front().text());
  CHECK(heard->request.devices == ask.request.devices);
  CHECK(heard->request.exclude == ask.request.exclude);
  CHECK(heard->request.admitted == ask.request.admitted);
  CHECK(heard->request.order == Order::listed);
  CHECK(heard->request.seed == 7);
  CHECK(heard->request.shared);
  CHECK(heard->request.promise_bytes == 1ULL << 40);
  CHECK(heard->request.allowed_processes == 2);
  CHECK(heard->request.time_s == 7200);
  CHECK(heard->request.yield_s == 30);
}

TEST_CASE("what any row of the table says arrives") {
  for (const RequestField& field : request_fields()) {
    CAPTURE(field.name);
    LeaseAsk ask;
    ask.request = test::said(field);
    const auto heard = decode_ask(encode(ask));
    REQUIRE(heard);
    CHECK(is_said(field, heard->request));
    CHECK(value_in_words(field, heard->request, ",") == value_in_words(field, ask.request, ","));
  }
}

TEST_CASE("to admit none is not the same as not to have looked") {
  LeaseAsk ask;
  CHECK_FALSE(decode_ask(encode(ask))->request.admitted);
  CHECK_FALSE(decode_ask(encode(ask))->wait);
  ask.request.admitted.emplace();
  CHECK(decode_ask(encode(ask))->request.admitted);
}

TEST_CASE("each message arrives as it was sent") {
  Standing waiting{
      .position = 2, .behind = Ticket{}, .waited = std::chrono::seconds(65), .reason = "behind alice"};
  waiting.starts_at_s = 1'795'265'000;
  waiting.behind->id = TicketId{77};
  waiting.behind->taker.pid = 4711;
  waiting.behind->user = "alice";
  waiting.behind->command = "train.py";
  waiting.behind->note = "sweep";
  const auto seen = std::get<Standing>(again(waiting));
  CHECK(seen.position == 2);
  CHECK(seen.waited == std::chrono::seconds(65));
  CHECK(seen.starts_at_s == 1'795'265'000);
  CHECK(seen.reason == "behind alice");
  CHECK(seen.behind == waiting.behind);
  CHECK_FALSE(std::get<Standing>(again(Standing{})).behind);

  const LeaseGranted granted{TicketId{9}, "/tmp/berth", "9/10", {"GPU-a", "GPU-b"}, {"a note"}};
  const auto got = std::get<LeaseGranted>(again(granted));
  CHECK(got.id == granted.id);
  CHECK(got.directory == granted.directory);
  CHECK(got.path == granted.path);
  CHECK(got.uuids == granted.uuids);
  CHECK(got.notes == granted.notes);

  const Culprit culprit{"bob", 12, "train.py", -5, TicketId{3}, "note"};
  const Verdict taken{"GPU-a", Clause::not_leased, "leased by bob", {culprit, {}}, 5};
  const LeaseRefused refused{{ErrorCode::timed_out, "in\nvain"}, {taken, {"GPU-b", {}, "", {}, {}}}};
  const auto no = std::get<LeaseRefused>(again(refused));
  CHECK(no.error == refused.error);
  CHECK(no.verdicts == refused.verdicts);

  Snapshot snapshot;
  snapshot.source = "nvml";
  snapshot.devices.emplace_back().uuid = "GPU-a";
  CHECK(std::get<Snapshot>(again(snapshot)) == snapshot);
}

TEST_CASE("what a later version says besides is ignored") {
  const auto waiting = decode_message("berth-lease-waiting 1\nposition=3\n[weather]\nuser=a\nend\n");
  REQUIRE(waiting);
  CHECK(std::get<Standing>(*waiting).position == 3);
  CHECK_FALSE(std::get<Standing>(*waiting).behind);
}

TEST_CASE("messages in a row are told apart, and half a one is none") {
  const std::string text = encode(Standing{}) + encode(LeaseGranted{});
  const std::size_t first = first_record(text);
  CHECK(text.substr(first) == encode(LeaseGranted{}));
  CHECK(first_record(std::string_view(text).substr(0, first - 1)) == 0);
  CHECK(first_record("") == 0);
}

TEST_CASE("what is malformed is an error") {
  CHECK_FALSE(decode_ask("berth-lease-ask 1\ncount=many\nend\n"));
  CHECK_FALSE(decode_ask("berth-lease-ask 1\ncondition=nam~x\nend\n"));
  CHECK_FALSE(decode_ask("hello\nend\n"));
  CHECK_FALSE(decode_message("usage: berth\nend\n"));
  CHECK_FALSE(decode_message("berth-lease-refused 1\n[culprit]\nuser=a\nend\n"));
}

}  // namespace
}  // namespace berth::api::lease_messages_test
