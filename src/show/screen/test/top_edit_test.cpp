#include "berth/screen/model/top_keys.h"

#include <doctest/doctest.h>

#include "berth/job/edit_plan.h"
#include "berth/job/task_standing.h"
#include "berth/verdict/test/machine.h"

namespace berth::view::top_edit_test {
namespace {

using Words = std::vector<std::string>;

ListedTask waiting_job(std::uint64_t number) {
  ListedTask task;
  task.id = {number, {}};
  task.job.words = {"python", "train.py"};
  return task;
}

/// A machine without GPUs, and a job of the reader's that waits.
struct Reader {
  TopSight sight{.jobs = {waiting_job(5)}, .uid = 1001, .user = "ada"};
  TopView view{.at = {TopSection::jobs, "", "5"}};

  TopDeed press(char32_t character) {
    return berth::view::press(view, {KeyName::character, character}, {}, sight);
  }
  void hears(std::string_view option, std::string said) {
    hear(view, {{"edit", "5", std::string(option)}, std::move(said)});
  }
};

const std::string kRefused = "job 5 has a place in the queue of the machine. " + std::string(kSayYes);

TEST_CASE("a key holds a waiting job or lets it go, and puts it first or last") {
  Reader reader;
  const TopDeed held = reader.press(U'o');
  CHECK(held.kind == TopDeed::Kind::perform);
  CHECK(held.words == Words{"edit", "5", "--hold"});
  reader.sight.jobs.front().standing.on_hold = true;
  CHECK(reader.press(U'o').words == Words{"edit", "5", "--no-hold"});
  CHECK(reader.press(U'f').words == Words{"edit", "5", "--first"});
  CHECK(reader.press(U'l').words == Words{"edit", "5", "--last"});
}

TEST_CASE("a job that runs or is over is not edited, and neither is what is no job") {
  Reader reader;
  reader.sight.jobs.front().standing.phase = TaskPhase::running;
  CHECK(reader.press(U'o').kind == TopDeed::Kind::nothing);
  CHECK(reader.view.said.starts_with("job 5 runs"));
  reader.sight.jobs.front().standing.phase = TaskPhase::ended;
  CHECK(reader.press(U'f').kind == TopDeed::Kind::nothing);
  CHECK(reader.view.said.starts_with("job 5 is over"));
  reader.view.at = {TopSection::devices, "gpu1", "0"};
  CHECK(reader.press(U'l').kind == TopDeed::Kind::nothing);
  CHECK(reader.view.said == "the cursor is on no waiting job of yours");
}

TEST_CASE("an array of which a task waits is edited as a whole") {
  Reader reader;
  reader.sight.jobs.front().standing.phase = TaskPhase::running;
  reader.sight.jobs.front().counts = TaskCounts{.waiting = 3, .running = 1};
  CHECK(reader.press(U'o').words == Words{"edit", "5", "--hold"});
}

TEST_CASE("the request of one's own job in the queue stands for the job, and nobody else's does") {
  Reader reader;
  auto report = std::make_shared<HostReport>();
  Ticket ticket = test::lease(3, test::uuid_of(0));
  ticket.phase = TicketPhase::waiting;
  ticket.uid = 1001;
  ticket.note = "job 5 sweep";
  report->ledger.tickets = {ticket};
  reader.view.at = {TopSection::queue, "gpu1", to_text(ticket.id)};
  const auto look = [&] {
    reader.sight.hosts = {
        std::make_shared<Host>(Host{.name = "gpu1", .report = std::make_shared<HostReport>(*report)})};
  };
  look();
  CHECK(reader.press(U'o').words == Words{"edit", "5", "--hold"});
  report->ledger.tickets.front().uid = 1002;
  look();
  CHECK(reader.press(U'o').kind == TopDeed::Kind::nothing);
}

TEST_CASE("what costs the place in the queue is done after a yes and not before") {
  Reader reader;
  reader.hears("--hold", kRefused);
  REQUIRE(reader.view.question);
  CHECK(reader.view.question->what == "hold job 5, and give up its place in the queue");
  CHECK(reader.press(U'n').kind == TopDeed::Kind::nothing);
  CHECK(reader.view.said == "nothing was done");
  reader.hears("--hold", kRefused);
  const TopDeed deed = reader.press(U'y');
  CHECK(deed.kind == TopDeed::Kind::perform);
  CHECK(deed.words == Words{"edit", "5", "--hold", "--yes"});
}

TEST_CASE("any other answer is shown and asks nothing, and nobody is asked while typing") {
  Reader reader;
  reader.hears("--hold", "job 5 is held");
  CHECK_FALSE(reader.view.question);
  CHECK(reader.view.said == "job 5 is held");
  reader.view.typing = true;
  reader.hears("--hold", kRefused);
  CHECK_FALSE(reader.view.question);
}

}  // namespace
}  // namespace berth::view::top_edit_test
