#include "berth/jobs/model/notice.h"

#include <doctest/doctest.h>

#include "berth/jobs/model/noticed_end.h"

namespace berth::notice_test {
namespace {

TaskStanding ended_as(TaskPhase phase, int exit_status = 0) {
  TaskStanding task;
  task.phase = phase;
  if (phase == TaskPhase::ended) task.exit_status = exit_status;
  return task;
}

}  // namespace

TEST_CASE("where a notice goes is one of five ways") {
  CHECK(notice_target_from_text("mail").value() == NoticeTarget{NoticeWay::mail, ""});
  CHECK(notice_target_from_text("mail:ada@example.org").value() ==
        NoticeTarget{NoticeWay::mail, "ada@example.org"});
  CHECK(notice_target_from_text("ntfy:https://ntfy.sh/ada").value() ==
        NoticeTarget{NoticeWay::ntfy, "https://ntfy.sh/ada"});
  CHECK(notice_target_from_text("cmd:echo a:b").value() == NoticeTarget{NoticeWay::command, "echo a:b"});
  for (const char* text : {"", "cmd:", "cmd", "https://x", "slack:x", "json:https://", "json:http://a\"b",
                           "ntfy:file:///etc/passwd", "mail:-oQ", "mail:a,b", "mail:a\nBcc: b"})
    CHECK_MESSAGE(!notice_target_from_text(text), text);
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
  CHECK(noticed_end({ended_as(TaskPhase::ended)})->words == "ended with status 0");
  CHECK(noticed_end({ended_as(TaskPhase::ended, 3)})->words == "failed: exit status 3");
  CHECK(noticed_end({ended_as(TaskPhase::ended, 3)})->event == NoticeEvent::fail);
  CHECK(noticed_end({ended_as(TaskPhase::interrupted)})->event == NoticeEvent::fail);
  CHECK_FALSE(noticed_end({ended_as(TaskPhase::cancelled)}));
  TaskStanding given_up = ended_as(TaskPhase::cancelled);
  given_up.reason = "job 3 did not end with status 0, as --after-ok asks";
  CHECK(noticed_end({given_up})->event == NoticeEvent::fail);
  CHECK(noticed_end({ended_as(TaskPhase::ended), ended_as(TaskPhase::ended, 1)})->words ==
        "ended: 1 of 2 tasks did not end with status 0");
}

}  // namespace berth::notice_test
