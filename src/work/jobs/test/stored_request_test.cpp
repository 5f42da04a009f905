#include "berth/job/job.h"

#include <doctest/doctest.h>

#include "berth/job/job_codec.h"
#include "berth/jobs/submission.h"
#include "berth/request/request.h"
#include "berth/request/test/said.h"

namespace berth::stored_request_test {
namespace {

using jobs::request_of;
using jobs::stored_from_options;
using Options = std::vector<std::string>;

StoredRequest stored(const Options& options) {
  auto read = stored_from_options(options);
  if (!read) FAIL(read.error().message);
  return *std::move(read);
}

Job job_that_asks(StoredRequest request) {
  Job job;
  job.words = {"true"};
  job.request = std::move(request);
  return job;
}

StoredRequest from_file(const Job& job) {
  auto again = decode_job(encode_job(job));
  if (!again) FAIL(again.error().message);
  return std::move(again->request);
}

// Each has one option of `berth submit` that its file keeps.
const Options kBesideRows{"--note=for a\nfriend", "--ids=uuid", "--mask=ignore", "--source=nvml"};
const Options kFar{"--anywhere",  "--hosts=a,b",     "--host=a",    "--not-host=b,c",
                   "--folder=/x", "--env=HOME,LANG", "--near=/data"};

TEST_CASE("what any row of the table says is kept in the file of a job, and is told as options again") {
  for (const RequestField& row : request_fields()) {
    CAPTURE(row.name);
    StoredRequest said;
    said.request = test::said(row);
    said.says_count = row.name == "count";
    if (said.request.seed) said.request.order = Order::random;
    if (!said.says_count) said.request.count = usual_count(said.request);
    const Options options = typed_options(said);
    REQUIRE_FALSE(options.empty());
    CHECK(from_file(job_that_asks(said)) == said);
    CHECK(is_said(row, from_file(job_that_asks(said)).request));
    CHECK(stored(options) == said);
  }
}

TEST_CASE("what a job asks for beside the table is kept, one by one and all together") {
  for (const std::string& option : kBesideRows) {
    CAPTURE(option);
    CHECK(typed_options(from_file(job_that_asks(stored({option})))) == Options{option});
  }
  CHECK(typed_options(from_file(job_that_asks(stored(kFar)))) == kFar);
  for (std::size_t i = 1; i < kFar.size(); ++i)
    CHECK(typed_options(stored({kFar[0], kFar[i]})) == Options{kFar[0], kFar[i]});
}

TEST_CASE("options are told as a user would type them, however they were typed") {
  const auto told = [](const Options& options) { return typed_options(stored(options)); };
  CHECK(told({"-n", "1"}) == Options{"--count=1"});
  CHECK(told({}) == Options{});
  CHECK(told({"--devices=0,1"}) == Options{"--devices=0,1"});
  CHECK(told({"--time=7200s"}) == Options{"--time=2h"});
  CHECK(told({"--time=90s", "-n2"}) == Options{"--count=2", "--time=90s"});
  CHECK(told({"--yield"}) == Options{"--yield"});
  CHECK(told({"--yield=30s"}) == Options{"--yield"});
  CHECK(told({"--yield=2m"}) == Options{"--yield=2m"});
  CHECK(told({"--memory=1536M"}) == Options{"--memory=1536M"});
  CHECK(told({"--memory=2048M"}) == Options{"--memory=2G"});
  CHECK(told({"--memory=3KB"}) == Options{"--memory=3000B"});
  CHECK(told({"--memory=auto"}) == Options{"--memory=auto"});
  CHECK(told({"--shared"}) == Options{"--shared"});
  CHECK(told({"--where=free>=20G", "--name", "A 100\"x"}) == Options{"--free=20G", "--name=A 100\"x"});
  CHECK(told({"--where=free>=20G and util<5"}) == Options{"--where=free >= 20G and util < 5"});
  CHECK(told({"--where=free>20G"}) == Options{"--where=free > 20G"});
  CHECK(told({"--mem-util=5%", "--util=5"}) == Options{"--mem-util=5", "--util=5"});
}

TEST_CASE("two requests are the same if the same options say them") {
  CHECK(stored({"--time=120m", "-n2"}) == stored({"--count=2", "--time=2h"}));
  CHECK_FALSE(stored({"--count=1"}) == stored({}));
}

TEST_CASE("the runner has a request as the command line would give it") {
  CHECK(from_file(job_that_asks(stored({"--devices=0,1"}))).request.count == 2);
  const auto request = request_of(from_file(job_that_asks(
      stored({"--devices=0,1", "--ids=uuid", "--mask=ignore", "--source=nvml", "--note=x", "--time=1h"}))));
  REQUIRE(request);
  CHECK(request->lease.count == 2);
  CHECK_FALSE(request->lease.said_count);
  CHECK(request->lease.uuids);
  CHECK(request->lease.mask == MaskUse::ignore);
  CHECK(request->lease.source == *source::source_kind_from_text("nvml"));
  CHECK(request->lease.note == "x");
  CHECK(request->lease.time_s == 3600);
  CHECK(request->far.passed_variables == "all");
  const auto far = request_of(from_file(job_that_asks(stored(kFar))));
  REQUIRE(far);
  CHECK(far->far.hosts.anywhere);
  CHECK(far->far.hosts.hosts == "a,b");
  CHECK(far->far.hosts.only == Options{"a"});
  CHECK(far->far.hosts.without == Options{"b", "c"});
  CHECK(far->far.folder == "/x");
  CHECK(far->far.passed_variables == "HOME,LANG");
  CHECK(far->far.near == "/data");
  CHECK(request_of(stored({"-n", "3"}))->lease.said_count == 3);
  StoredRequest newer;
  newer.source = "warp";
  CHECK(request_of(newer).error().code == ErrorCode::failure);
}

TEST_CASE("a job file of a newer version is refused, with both versions") {
  CHECK(encode_job(job_that_asks({})).starts_with("berth-job 1\n"));
  const auto newer = decode_job("berth-job 2\nword=true\nend\n");
  CHECK(newer.error().message == "written in version 2 of the job format; this program knows 1");
}

TEST_CASE("a request that is cut off or malformed is refused") {
  std::string text = encode_job(job_that_asks(stored({"--time=2h"})));
  CHECK(text.contains("[request]\ntime_s=7200\n"));
  CHECK_FALSE(decode_job(text.substr(0, text.size() - 4)));
  text.replace(text.find("7200"), 4, "soon");
  CHECK_FALSE(decode_job(text));
  text = encode_job(job_that_asks(stored({"--free=20G"})));
  text.replace(text.find(">="), 2, "??");
  CHECK_FALSE(decode_job(text));
}

}  // namespace
}  // namespace berth::stored_request_test
