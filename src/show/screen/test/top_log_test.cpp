#include "berth/screen/model/top_log.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "berth/screen/model/top.h"

namespace berth::view::top_log_test {
namespace {

const ScreenSize kSize{80, 24};

std::string text_of(const ScreenRow& row) {
  std::string text;
  for (const Cell& part : row.parts) text += part.text;
  return text;
}

/// A reader of jobs 12, and 13, an array.
struct LogReader {
  TopSight sight{};
  TopView view{};

  LogReader() {
    ListedTask task;
    task.id.job = 12;
    task.output_path = "/spool/12/output";
    task.job.words = {"python", "train.py"};
    task.standing.phase = TaskPhase::running;
    ListedTask array;
    array.id.job = 13;
    sight.jobs = {task, array};
    sight.hosts = {std::make_shared<Host>(Host{.name = "gpu1", .report = std::make_shared<HostReport>()})};
  }
  TopScreen screen() const { return top_screen(sight, view, kSize, {}); }
  void press(const Key& key) { berth::view::press(view, key, screen(), sight); }
  void press(char32_t character) { press(Key{KeyName::character, character}); }
  void open(std::string name) {
    view.at = {TopSection::jobs, "", std::move(name)};
    press(Key{KeyName::enter});
  }
  void print(std::size_t lines) {
    for (std::size_t i = 0; i < lines; ++i) view.log->text += "line " + std::to_string(++printed) + "\n";
  }
  std::string last_line() const { return text_of(screen().rows[kSize.lines - 2]); }
  std::size_t printed = 0;
};

TEST_CASE("Enter on a job shows what it has printed, and Esc, Enter and q go back") {
  for (const Key back : {Key{KeyName::escape}, Key{KeyName::enter}, Key{KeyName::character, U'q'}}) {
    LogReader reader;
    reader.open("12");
    REQUIRE(reader.view.log.has_value());
    CHECK(reader.view.log->path == "/spool/12/output");
    CHECK(text_of(reader.screen().rows[0]).starts_with("job 12: running, python train.py"));
    CHECK(text_of(reader.screen().rows[1]) == "it has printed nothing yet");
    reader.press(back);
    CHECK_FALSE(reader.view.log.has_value());
    CHECK(reader.view.folded.empty());
  }
}

TEST_CASE("an array and a job that is gone say so, and the title of the section folds") {
  LogReader reader;
  reader.open("13");
  CHECK(reader.view.said == "13 is an array: berth log 13 prints what its tasks have printed");
  reader.open("14");
  CHECK(reader.view.said == "it is gone meanwhile");
  reader.open("");
  CHECK(reader.view.folded.contains(TopSection::jobs));
  CHECK_FALSE(reader.view.log.has_value());
}

TEST_CASE("it follows what is printed, stands still where the reader scrolls, and follows again") {
  LogReader reader;
  reader.open("12");
  reader.print(100);
  CHECK(reader.last_line() == "line 100");
  reader.print(5);
  CHECK(reader.last_line() == "line 105");
  reader.press(Key{KeyName::up});
  CHECK(reader.last_line() == "line 104");
  CHECK_FALSE(reader.view.log->follows());
  reader.press(Key{KeyName::page_up});
  CHECK(reader.last_line() == "line 82");
  reader.press(U'g');
  CHECK(text_of(reader.screen().rows[1]) == "line 1");
  reader.press(Key{KeyName::up});
  CHECK(text_of(reader.screen().rows[1]) == "line 1");
  reader.press(Key{KeyName::page_down});
  CHECK(text_of(reader.screen().rows[1]) == "line 23");
  reader.press(Key{KeyName::end});
  CHECK(reader.view.log->follows());
  CHECK(reader.last_line() == "line 105");
}

TEST_CASE("a line is what a terminal would have left, and no sequence of a job reaches ours") {
  CHECK(pieces_of_log("10%\r50%\r100%\n\x1b[31mred\x1b[0m\r\na\tb\n\x1b]52;c;eA==\x07\n", 80) ==
        std::vector<std::string>{"100%", "red", "a       b", "\\x1b]52;c;eA==\\x07"});
  CHECK(pieces_of_log("abcdef\nüüü\n日本\n", 3) == std::vector<std::string>{"abc", "def", "üüü", "日", "本"});
  CHECK(pieces_of_log("\x1b[", 80) == std::vector<std::string>{""});
  CHECK(pieces_of_log("a\n\nb", 80) == std::vector<std::string>{"a", "", "b"});
}

TEST_CASE("an output that cannot be read says why") {
  LogReader reader;
  reader.open("12");
  reader.view.log->error = "opening /spool/12/output: Permission denied";
  CHECK(text_of(reader.screen().rows[1]) == "opening /spool/12/output: Permission denied");
}

}  // namespace
}  // namespace berth::view::top_log_test
