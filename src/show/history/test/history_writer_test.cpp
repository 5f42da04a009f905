#include "berth/history/history.h"
#include "berth/view/usage.h"

#include <doctest/doctest.h>

#include <atomic>
#include <ctime>
#include <future>
#include <thread>
#include <vector>

#include "scratch.h"

namespace berth::history::history_writer_test {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;
using Status = view::HistoryHealth::Status;

/// A writer, and an agent that looks each second.
struct Scene {
  std::vector<std::string> said;
  HistoryWriter writer{[this](const std::string& text) { said.push_back(text); }};
  std::int64_t now_s = kNow;

  void look(int times = 1) {
    for (; times > 0; --times, ++now_s) {
      writer.see({{now_s, std::chrono::seconds(now_s - kNow + 1000)},
                  1,
                  {{"gpu0", "0", "H100", {50, 1000, 40, 300, 100}}},
                  {{{1}, kNow, "alice", {{"gpu0", 1, true}}}}});
    }
  }
  double leased_hours() {
    const HistoryAnswer answer = writer.answer(UsageQuestion(), now_s);
    CHECK_MESSAGE(answer.http_status == 200, answer.json);
    const auto usage = view::usage_from_json(answer.json);
    REQUIRE(usage);
    return usage->rows.empty() ? 0 : usage->rows[0].leased_gpu_hours;
  }
};

TEST_CASE("what is not kept is not asked in vain") {
  Scene scene;
  scene.look();
  scene.writer.write(kNow);
  CHECK(scene.writer.health() == view::HistoryHealth{});
  CHECK(scene.writer.answer(UsageQuestion(), kNow).http_status == 503);
  CHECK(scene.said.empty());
}

TEST_CASE("a full disk is told once, costs no hour, and is forgotten when there is room") {
  const Scratch scratch;
  Scene scene;
  scene.writer.keep_in(scratch.path(), kNow);
  scene.look(10);
  scene.writer.write(scene.now_s);
  CHECK(scene.writer.health().status == Status::ok);
  {
    const FullDisk full(1);
    for (int i = 0; i < 5; ++i) {
      scene.look(720);
      scene.writer.write(scene.now_s);
      CHECK(scene.writer.health().status == Status::failing);
      CHECK(scene.writer.health().reason.starts_with(scratch.path()));
    }
    REQUIRE(scene.said.size() == 1);
    CHECK(scene.said[0].find("the history is not written: " + scratch.path()) == 0);
    CHECK(scene.leased_hours() == doctest::Approx(9.0 / 3600).epsilon(0.1));
  }
  scene.writer.write(scene.now_s);
  CHECK(scene.writer.health().status == Status::ok);
  CHECK(scene.said.back() == "the history is written again");
  CHECK(scene.leased_hours() == doctest::Approx(3609.0 / 3600).epsilon(0.001));
}

TEST_CASE("a disk that is full from the start is no end either") {
  const Scratch scratch;
  Scene scene;
  {
    const FullDisk full(1);
    scene.writer.keep_in(scratch.path(), kNow);
    scene.look(100);
    CHECK(scene.writer.health().status == Status::failing);
    CHECK(scene.writer.answer(UsageQuestion(), kNow).http_status == 503);
  }
  scene.writer.write(scene.now_s);
  scene.look(100);
  scene.writer.write(scene.now_s);
  CHECK(scene.writer.health().status == Status::ok);
  // The ticket tells when the lease began.
  CHECK(scene.leased_hours() == doctest::Approx(199.0 / 3600).epsilon(0.01));
}

TEST_CASE("a second corrupt file of a day takes the place of no other, and of many no more are made") {
  const Scratch scratch;
  for (int i = 0; i < 7; ++i) {
    scratch.write("not a database " + std::to_string(i) + std::string(5000, 'x'));
    std::filesystem::remove(scratch.path() + "-wal");
    Scene scene;
    scene.writer.keep_in(scratch.path(), kNow);
    scene.look();
    scene.writer.write(scene.now_s);
    CHECK((scene.writer.health().status == Status::ok) == (i < 5));
    if (i >= 5) CHECK(scene.writer.health().reason.find("move them away") != std::string::npos);
  }
  for (const char* end : {"", "-2", "-3", "-4", "-5"}) {
    const std::string aside = scratch.path() + ".corrupt-2027-01-15" + end;
    CHECK_MESSAGE(std::filesystem::exists(aside), aside);
  }
  CHECK(!std::filesystem::exists(scratch.path() + ".corrupt-2027-01-15-6"));
}

TEST_CASE("a corrupt file is kept under another name, and a new one begins") {
  for (const bool header : {true, false}) {
    const Scratch scratch;
    {
      Scene before;
      before.writer.keep_in(scratch.path(), kNow);
      before.look(100);
      before.writer.write(before.now_s);
    }
    std::string text = scratch.text();
    REQUIRE(text.size() > 3 * 4096);
    for (std::size_t i = header ? 0 : 4096; i < text.size(); i += 3) text[i] = 'x';
    scratch.write(text);
    std::filesystem::remove(scratch.path() + "-wal");
    Scene scene;
    scene.writer.keep_in(scratch.path(), kNow);
    REQUIRE(scene.said.size() == 1);
    CHECK(scene.said[0].find("was corrupt") != std::string::npos);
    CHECK(scene.writer.health().reason.find(scratch.path() + ".corrupt-2027-01-15") != std::string::npos);
    CHECK(std::filesystem::file_size(scratch.path() + ".corrupt-2027-01-15") == text.size());
    scene.look(100);
    scene.writer.write(scene.now_s);
    CHECK(scene.writer.health().status == Status::ok);
    CHECK(scene.leased_hours() > 0);
  }
}

TEST_CASE("a file that somebody removes is made anew, and its devices have names") {
  const Scratch scratch;
  Scene scene;
  scene.writer.keep_in(scratch.path(), kNow);
  scene.look(100);
  scene.writer.write(scene.now_s);
  std::filesystem::remove(scratch.path());
  std::filesystem::remove(scratch.path() + "-wal");
  scene.look(100);
  scene.writer.write(scene.now_s);
  CHECK(std::filesystem::exists(scratch.path()));
  const HistoryAnswer answer = scene.writer.answer(UsageQuestion{.by = UsageBy::device}, scene.now_s);
  CHECK(view::usage_from_json(answer.json)->rows.at(0).name == "H100");
}

TEST_CASE("an agent that begins again goes on with the leases that it finds") {
  const Scratch scratch;
  Scene first;
  first.writer.keep_in(scratch.path(), kNow);
  first.look(60);
  first.writer.write(first.now_s);
  first.look(20);  // and is killed: this was not written
  first.writer.keep_in(std::nullopt, kNow - 1'000'000);
  Scene second;
  second.now_s = first.now_s + 20;
  second.writer.keep_in(scratch.path(), second.now_s);
  second.look(1);
  second.writer.write(second.now_s);
  CHECK(second.leased_hours() == doctest::Approx(100.0 / 3600).epsilon(0.001));
}

TEST_CASE("the history's thread answers, and writes what is left at the end") {
  const Scratch scratch;
  History history([](const std::string&) {});
  history.keep_in(scratch.path());
  history.see({{std::time(nullptr), std::chrono::seconds(1000)}, 1, {{"gpu0", "0", "H100", {}}}, {}});
  std::promise<HistoryAnswer> answered;
  history.ask(UsageQuestion(), [&](HistoryAnswer answer) { answered.set_value(std::move(answer)); });
  CHECK(answered.get_future().get().http_status == 200);
  CHECK(history.finish(std::chrono::seconds(20)));
  CHECK(history.health().status == Status::ok);
  auto database = Database::open(scratch.path(), 1 << 20U);
  CHECK_FALSE(database);  // the thread's writer has it for as long as it lives
}

TEST_CASE("a disk that hangs holds up nobody, and is told") {
  const Scratch scratch;
  std::promise<void> disk;
  // The line that says that there is no such folder is as slow as a disk that hangs.
  History history([hang = disk.get_future().share()](const std::string&) { hang.wait(); },
                  std::chrono::milliseconds(1));
  history.keep_in(scratch.folder() + "/none/history.db");
  while (history.health().status != Status::failing) std::this_thread::yield();
  CHECK(history.health().reason.starts_with("the disk does not answer"));
  for (int i = 0; i < 1000; ++i) history.see({{kNow + i, std::chrono::seconds(i)}, 1, {}, {}});
  std::atomic<int> refused = 0;
  for (int i = 0; i < 100; ++i)
    history.ask(UsageQuestion(),
                [&](const HistoryAnswer& answer) { refused += answer.http_status == 503 ? 1 : 0; });
  CHECK(refused == 36);
  CHECK_FALSE(history.finish(std::chrono::milliseconds(1)));
  disk.set_value();
  CHECK(history.finish(std::chrono::seconds(20)));
  CHECK(refused == 100);
}

}  // namespace
}  // namespace berth::history::history_writer_test
