#include "berth/source/probe/probe.h"

#include <doctest/doctest.h>

namespace berth::source::protocol_test {
namespace {

TEST_CASE("a probe hears what it is asked") {
  const ReadRequest request{ReadingKind::name | ReadingKind::memory,
                            *source_kind_from_text("nvidia-smi"),
                            "/tmp/a\nb",
                            "1.2",
                            {"GPU-a", "GPU-b"}};
  const auto heard = decode_request(encode_request(request));
  REQUIRE(heard);
  CHECK(*heard == request);
  CHECK(decode_request(encode_request({})) == ReadRequest{});
  // What a later version asks besides is ignored.
  CHECK(decode_request("berth-read 1\nreadings=1\nnever_heard=of\nend\n")->readings.bits == 1);
  CHECK_FALSE(decode_request("berth-read 1\nsource=tea leaves\nend\n"));
  CHECK_FALSE(decode_request("berth-read 1\nreadings=all\nend\n"));
  CHECK_FALSE(decode_request(""));
}

TEST_CASE("an error comes back as it was, and a code of a newer probe is a failure") {
  const Error error{ErrorCode::no_driver, "there is none\nat all"};
  CHECK(decode_error(encode_error(error)) == error);
  CHECK(decode_error("berth-error 1\ncode=haunted\nmessage=m\nend\n") == Error{ErrorCode::failure, "m"});
  CHECK_FALSE(decode_error("berth-snapshot 1\nend\n"));
}

TEST_CASE("the step at which an answer stops is told, and what came before it kept") {
  for (const Stage& stage : {Stage{Stage::Kind::driver, 0, 0}, Stage{Stage::Kind::device, 2, 8, "amd"},
                             Stage{Stage::Kind::topology, 0, 0}, Stage{Stage::Kind::users, 0, 0}}) {
    RecordWriter record("berth-snapshot", 1);
    record.field("source", "nvml");
    write_progress(record, stage);
    const Interrupted interrupted = cut_at_last_progress(record.take() + "[dev");
    CHECK(interrupted.stage == stage);
    CHECK(interrupted.record == "berth-snapshot 1\nsource=nvml\nend\n");
  }
  CHECK(cut_at_last_progress("berth-snapshot 1\nsource=nvml\n").record.empty());
  CHECK(cut_at_last_progress("berth-snapshot 1\n\n[progress]\nstage=device\nindex=1").stage ==
        Stage{Stage::Kind::device, 0, 0});
  // Half a word is none.
  CHECK(cut_at_last_progress("berth-snapshot 1\n\n[progress]\nstage=device\nindex=1\ncount=8\nvendor=am")
            .stage == Stage{Stage::Kind::device, 1, 8});
}

TEST_CASE("another version is refused, and none is any") {
  CHECK(check_version("", "1"));
  CHECK(check_version("1", "1"));
  const auto refused = check_version("2", "1");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.contains("is of version 1"));
  CHECK(is_whole_record("berth-read 1\nend\n"));
  CHECK_FALSE(is_whole_record("berth-read 1\n"));
}

}  // namespace
}  // namespace berth::source::protocol_test
