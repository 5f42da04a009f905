#include "berth/job/job.h"

#include <doctest/doctest.h>

#include "berth/job/task_standing.h"
#include "berth/jobs/model/job_tasks.h"
#include "berth/jobs/send_notice.h"

namespace berth::notice_test {
namespace {

using namespace berth::jobs;

TaskStanding ended_as(TaskPhase phase, int exit_status = 0) {
  TaskStanding task;
  task.phase = phase;
  if (phase == TaskPhase::ended) task.exit_status = exit_status;
  return task;
}

}  // namespace

TEST_CASE("a target is the word of a channel and what follows it") {
  const auto read = [](std::string_view text) {
    const auto target = notice_target_from_text(text);
    if (!target) FAIL(text);
    return std::pair(std::string(target->channel->word), target->what);
  };
  CHECK(read("mail") == std::pair<std::string, std::string>("mail", ""));
  CHECK(read("mail:ada@example.org") == std::pair<std::string, std::string>("mail", "ada@example.org"));
  CHECK(read("ntfy:https://ntfy.sh/ada") ==
        std::pair<std::string, std::string>("ntfy", "https://ntfy.sh/ada"));
  CHECK(read("cmd:echo a:b") == std::pair<std::string, std::string>("cmd", "echo a:b"));
  for (const char* text : {"", "cmd:", "cmd", "https://x", "slack:x", "json:https://", "json:http://a\"b",
                           "ntfy:file:///etc/passwd", "mail:-oQ", "mail:a,b", "mail:a\nBcc: b"})
    CHECK_MESSAGE(!notice_target_from_text(text), text);
  CHECK(notice_forms() == "mail, mail:ADDRESS, ntfy:URL, slack:URL, json:URL, cmd:COMMAND");
  CHECK(notice_target_from_text("pager:1").error().message.contains("ntfy:URL"));
}

TEST_CASE("each channel of curl sends what its row says") {
  const NoticeText text{"fail", "12", "train", "job 12 (train)", "failed: \"3\"", "3", "gpu1", "2 Wh"};
  const auto request = [&](std::string_view target) {
    return notice_request(*notice_target_from_text(target), text);
  };
  CHECK(request("ntfy:https://n/x") ==
        "url = \"https://n/x\"\ndata-raw = \"job 12 (train) on gpu1: failed: \\\"3\\\"; 2 Wh\"\n"
        "header = \"Title: berth: fail\"\n");
  CHECK(request("slack:https://n/x").contains("{\\\"text\\\":\\\"job 12"));
  for (const NoticeChannel& channel : notice_channels()) {
    if (channel.program != NoticeProgram::curl || channel.word == "ntfy") continue;
    CHECK(request(std::string(channel.word) + ":https://n/x")
              .ends_with("header = \"Content-Type: application/json\"\n"));
  }
  const std::string json = request("json:https://n/x");
  for (const char* part :
       {"berth-notice", "\\\"version\\\":1", "\\\"event\\\":\\\"fail", "\\\"job\\\":\\\"12",
        "\\\"name\\\":\\\"train", "\\\"host\\\":\\\"gpu1", "\\\"exit_status\\\":3"})
    CHECK_MESSAGE(json.contains(part), part);
}

TEST_CASE("an exit status that is no number is none, and the notice is sent all the same") {
  for (const char* odd : {"", "x", "3x", "99999999999", " 3"}) {
    const NoticeText text{"fail", "12", "train", "job 12", "failed", odd, "gpu1", ""};
    const std::string json = notice_request(*notice_target_from_text("json:https://n/x"), text);
    CHECK_MESSAGE(json.contains("\\\"exit_status\\\":null"), odd);
  }
}

TEST_CASE("the URL of a webhook is told nobody") {
  CHECK(told_target("slack:https://hooks.slack.com/services/T/B/x") == "slack");
  CHECK(told_target("mail:ada@example.org") == "mail:ada@example.org");
}

TEST_CASE("without a word all but the start is told") {
  NoticeWish wish{.targets = {"mail"}, .events = {}};
  CHECK_FALSE(wish.wants(NoticeEvent::start));
  CHECK(wish.wants(NoticeEvent::fail));
  wish.events = {"start"};
  CHECK(wish.wants(NoticeEvent::start));
  CHECK_FALSE(wish.wants(NoticeEvent::end));
  CHECK_FALSE(NoticeWish{}.wants(NoticeEvent::fail));
}

TEST_CASE("an end is told in words, but not to whom it was who cancelled") {
  CHECK(end_notice({ended_as(TaskPhase::ended)})->words == "ended with status 0");
  CHECK(end_notice({ended_as(TaskPhase::ended, 3)})->words == "failed: exit status 3");
  CHECK(end_notice({ended_as(TaskPhase::ended, 3)})->event == NoticeEvent::fail);
  CHECK(end_notice({ended_as(TaskPhase::interrupted)})->event == NoticeEvent::fail);
  CHECK_FALSE(end_notice({ended_as(TaskPhase::cancelled)}));
  TaskStanding given_up = ended_as(TaskPhase::cancelled);
  given_up.reason = "job 3 did not end with status 0, as --after-ok asks";
  CHECK(end_notice({given_up})->event == NoticeEvent::fail);
  CHECK(end_notice({ended_as(TaskPhase::ended), ended_as(TaskPhase::ended, 1)})->words ==
        "ended: 1 of 2 tasks did not end with status 0");
}

}  // namespace berth::notice_test
