#include "berth/usage/receipt.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "berth/queue/schedule.h"

namespace berth::receipt_test {
namespace {

constexpr std::uint32_t kAlice = 1001;

Receipt run_of(const std::string& command, std::int64_t minutes, std::int64_t ended_s = 1'800'000'000) {
  Receipt receipt;
  receipt.lease = TicketId{77};
  receipt.job = "12.7";
  receipt.ended_s = ended_s;
  receipt.fingerprint = fingerprint_of(kAlice, command);
  receipt.shape = shape_of(kAlice, command);
  receipt.program = told_program(command);
  receipt.command = command;
  receipt.waited_ms = 4000;
  receipt.lasted_ms = minutes * 60'000;
  receipt.exit_status = 0;
  receipt.driver = "550.54.15";
  receipt.devices = {{"0", "GPU-a", "NVIDIA A100", 3'600'000}, {"1", "GPU-b", "NVIDIA A100", std::nullopt}};
  return receipt;
}

TEST_CASE("what was written of a run is read as it was, a line each") {
  Receipt killed = run_of("sh -c 'a; b\\'", 3);
  killed.exit_status.reset();
  killed.signal = 9;
  killed.ending = Ending::by_others;
  killed.promise_bytes = 5;
  killed.sampled_every_ms = 10'000;
  killed.is_accounted = true;
  killed.clean = false;
  killed.devices[0].peak_bytes = 7;
  killed.devices[0].total_bytes = 80;
  killed.devices[0].use_percent = 0;
  killed.devices[1].throttled_percent = 4;
  killed.outsiders = {{"1", 812, "bob", "python x.py", 3000}};
  const std::vector<Receipt> runs{run_of("python train.py", 130), killed};
  std::string text;
  for (const Receipt& run : runs) {
    const std::string line = encode_receipt(run);
    CHECK(line.find('\n') == line.size() - 1);
    text += line;
  }
  CHECK(decode_receipts(text) == runs);
}

TEST_CASE("a tab or an end of line in a command breaks no line") {
  Receipt run = run_of("x", 3);
  run.command = "sh -c a\tb\nc\\";
  const auto read = decode_receipts(encode_receipt(run));
  REQUIRE(read.size() == 1);
  CHECK(read[0].command == "sh -c a b\nc\\");
}

TEST_CASE("a newer writer's keys are ignored, and lines of another version skipped") {
  std::string newer = encode_receipt(run_of("a", 3));
  newer.insert(newer.find("\tjob="), "\tpeak=7");
  std::string other = encode_receipt(run_of("b", 3));
  other.replace(other.find(" 1"), 2, " 2");
  const auto read = decode_receipts(newer + other + encode_receipt(run_of("c", 3)));
  REQUIRE(read.size() == 2);
  CHECK(read[0] == run_of("a", 3));
  CHECK(read[1].command == "c");
}

TEST_CASE("a run has the highest peak of its devices, their mean use, and what is not told is not nothing") {
  Receipt run = run_of("a", 3);
  CHECK(figures_of(run) == RunFigures{});
  run.devices[0].peak_bytes = 7;
  run.devices[1].peak_bytes = 9;
  run.devices[0].use_percent = 40;
  run.devices[0].throttled_percent = 0;
  CHECK(figures_of(run) == RunFigures{std::nullopt, 9, 40});
  run.devices[1].use_percent = 80;
  CHECK(use_percent_of(run) == 60U);
  CHECK(throttled_percent_of(run) == 0U);
}

TEST_CASE("a run was clean if every look was there, and none saw an outsider or slowed clocks") {
  Receipt run = run_of("python time.py", 1);
  for (DeviceReceipt& device : run.devices) device.throttled_percent = 0;
  const RunSamples all{.every_ms = 1000, .samples = 58};
  CHECK(is_clean(run, all) == true);
  // The sampler began late, was killed, or saw nothing.
  CHECK(is_clean(run, {.every_ms = 1000, .samples = 57}) == std::nullopt);
  CHECK(is_clean(run, {.every_ms = 1000}) == std::nullopt);
  Receipt slowed = run;
  slowed.devices[1].throttled_percent = 1;
  CHECK(is_clean(slowed, all) == false);
  Receipt visited = run;
  visited.outsiders = {{"1", 812, "bob", "python x.py", 1000}};
  CHECK(is_clean(visited, all) == false);
  CHECK(is_clean(visited, {.every_ms = 1000, .samples = 1}) == false);
  // A share, a MIG instance, and a card that does not tell.
  run.devices[0].throttled_percent.reset();
  CHECK(is_clean(run, all) == std::nullopt);
}

TEST_CASE("a line that is torn at any byte spoils no other") {
  const std::string whole = encode_receipt(run_of("a", 3));
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto read = decode_receipts(whole.substr(0, cut) + encode_receipt(run_of("b", 5)));
    REQUIRE(read.size() == 1);
    CHECK(read[0] == run_of("b", 5));
    CHECK(decode_receipts(whole.substr(0, cut)).empty());
  }
}

TEST_CASE("a command that names the format is no beginning of a line") {
  Receipt run = run_of("a", 3);
  run.command = "cat berth-receipt 1\tlease=";
  const auto read = decode_receipts(encode_receipt(run));
  REQUIRE(read.size() == 1);
  CHECK(read[0].command == "cat berth-receipt 1 lease=");
}

TEST_CASE("figures that nobody can have measured are no receipt") {
  Receipt run = run_of("a", 3);
  run.lasted_ms = -1;
  CHECK(decode_receipts(encode_receipt(run)).empty());
  run = run_of("a", 3);
  run.waited_ms = -1;
  CHECK(decode_receipts(encode_receipt(run)).empty());
}

TEST_CASE("what anybody may have written there is read without harm") {
  CHECK(rc::check([](const std::string& text) { decode_receipts(text + "\n"); }));
}

TEST_CASE("what is kept of a long text are its last whole lines") {
  CHECK(last_lines("aa\nbb\ncc\n", 100) == "aa\nbb\ncc\n");
  CHECK(last_lines("aa\nbb\ncc\n", 6) == "bb\ncc\n");
  CHECK(last_lines("aa\nbb\ncc\n", 5) == "cc\n");
  CHECK(last_lines("aaaaaaaaa", 3) == "");
}

TEST_CASE("the runs of one machine stay in their order, also where its clock was set back") {
  const auto read = merged({{run_of("a1", 3, 100), run_of("a2", 3, 40), run_of("a3", 3, 120)},
                            {run_of("b1", 3, 90), run_of("b2", 3, 110)}},
                           200);
  std::string order;
  for (const Receipt& run : read) order += run.command + " ";
  CHECK(order == "b1 a1 a2 b2 a3 ");
}

TEST_CASE("a run that a wrong clock put into the future counts as old as the one before it") {
  const std::int64_t future_s = 9'000'000'000;
  const auto read = merged({{run_of("a1", 3, 100), run_of("a2", 3, future_s), run_of("a3", 3, 120)},
                            {run_of("b1", 3, 130), run_of("b2", 3, 140)}},
                           140);
  std::string order;
  for (const Receipt& run : read) order += run.command + " ";
  CHECK(order == "a1 a2 a3 b1 b2 ");
}

TEST_CASE("numbers and paths in its words make no other run, and a word that is neither does") {
  const auto shape = [](const char* command) { return shape_of(kAlice, command); };
  CHECK(shape("python train.py --lr=0.1 --seed 3") == shape("python train.py --lr=1e-3 --seed 44"));
  CHECK(shape("python train.py --data=/a/b") == shape("python train.py --data=../c"));
  CHECK(shape("python train.py /data/1") == shape("python train.py /scratch/x/y"));
  CHECK(shape("python train.py --model small") != shape("python train.py --model large"));
  CHECK(shape("python train.py") != shape("python eval.py"));
  CHECK(shape_of(1, "a") != shape_of(2, "a"));
}

TEST_CASE("people call a program by its script") {
  CHECK(told_program("/usr/bin/python3 -u /home/a/train.py --lr 3") == "train.py");
  CHECK(told_program("./bench 3") == "bench");
  CHECK(told_program("python -m torch.distributed.run x.py") == "torch.distributed.run");
  CHECK(told_program("sh -c 'exit 3; ls /tmp'") == "'exit ; ls /tmp'");
}

using Lasted = std::vector<Moment>;

TEST_CASE("a run is expected by those nearest to it of which there are three") {
  std::vector<Receipt> runs{run_of("python eval.py", 5), run_of("python train.py --model a", 10),
                            run_of("python train.py --model a", 20)};
  const auto earlier = [&](const char* command) { return earlier_runs(runs, kAlice, command); };
  CHECK(earlier("python train.py --model a") == Lasted{300, 600, 1200});
  runs.push_back(run_of("python train.py --model b", 30));
  CHECK(earlier("python train.py --model a") == Lasted{600, 1200, 1800});
  runs.push_back(run_of("python train.py --model a", 40));
  CHECK(earlier("python train.py --model a") == Lasted{600, 1200, 2400});
  CHECK(earlier("new") == Lasted{300, 600, 1200, 1800, 2400});
  CHECK(earlier_runs({}, kAlice, "new").empty());
}

TEST_CASE("the first earlier run counts, and what was over within a minute does not") {
  std::vector<Receipt> runs{run_of("python train.py", 0)};
  runs[0].lasted_ms = 59'999;
  CHECK(earlier_runs(runs, kAlice, "python train.py").empty());
  runs[0].lasted_ms = 60'000;
  CHECK(earlier_runs(runs, kAlice, "python train.py") == Lasted{60});
}

TEST_CASE("what earlier runs come to is what an expectation is made of") {
  const std::vector<Receipt> runs{run_of("python train.py", 60), run_of("python train.py", 120),
                                  run_of("python train.py", 180)};
  const auto earlier = earlier_runs(runs, kAlice, "python train.py");
  CHECK(expectation_of(std::nullopt, earlier, {.expect = Expect::runs}) ==
        Expectation{3 * 3600, 3 * 3 * 3600});
}

TEST_CASE("programs are told with the one that ran last first, and by the middle of how long they took") {
  Receipt failed = run_of("python train.py", 1);
  failed.ending = Ending::badly;
  failed.devices.pop_back();
  // The highest peak is of neither the first nor the last.
  failed.devices[0].peak_bytes = 9;
  Receipt longest = run_of("python train.py", 30);
  longest.devices[1].peak_bytes = 7;
  const auto told =
      runs_by_program(std::vector{run_of("python train.py", 10), failed, longest, run_of("./bench", 5, 7)});
  REQUIRE(told.size() == 2);
  CHECK(told[0] == ProgramRuns{"bench", "./bench", 1, 0, 5 * 60'000, 7, std::nullopt});
  CHECK(told[1] ==
        ProgramRuns{"train.py", "python train.py", 3, 1, 10 * 60'000, 1'800'000'000, 3'600'000, 9});
}

TEST_CASE("of several devices the energy is known only where all of them tell it") {
  Receipt run = run_of("a", 3);
  CHECK_FALSE(energy_mj_of(run));
  run.devices[1].energy_mj = 400'000;
  CHECK(energy_mj_of(run) == 4'000'000U);
  run.devices.clear();
  CHECK_FALSE(energy_mj_of(run));
}

TEST_CASE("a program that is forgotten leaves the lines of others, and those that cannot be read") {
  const std::string other = "berth-receipt 2\tend\n" + encode_receipt(run_of("./bench", 5));
  CHECK(without_program(encode_receipt(run_of("python train.py", 3)) + other, "train.py") == other);
}

}  // namespace
}  // namespace berth::receipt_test
