// Plays `--memory auto` on recorded run times, and on the memory of made-up programs, since no
// record tells memory: how often a run has more in use than it was promised, and how many more runs
// the cards take.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "berth/usage/receipt.h"

namespace berth::memory_packing_test {
namespace {

constexpr std::uint32_t kAlice = 1000;
constexpr std::uint64_t kCard = 80ULL << 30U;
constexpr std::size_t kCards = 8;

/// Of a recorded trace, in seconds: tests/bench/data.
std::vector<double> recorded_run_times() {
  std::ifstream file(BERTH_SOURCE_DIR "/tests/bench/data/runtimes.csv");
  std::vector<double> seconds;
  for (std::string line; std::getline(file, line);) {
    const std::size_t comma = line.find(',');
    if (comma != std::string::npos && !line.empty() && line.front() >= '0' && line.front() <= '9')
      seconds.push_back(std::min(std::stod(line.substr(comma + 1)), 3.0 * 86'400));
  }
  return seconds;
}

/// What a user runs again and again.
struct Program {
  std::string command;
  double median_bytes = 0;
  double spread = 0;  ///< sigma of the logarithm, from run to run
  std::vector<Receipt> receipts{};
};

struct PlayedRun {
  std::uint64_t need_bytes = 0;
  std::uint64_t promise_bytes = 0;  ///< kCard: a whole card
  double lasts_s = 0;
};

struct Mix {
  std::vector<PlayedRun> runs;
  std::size_t promised = 0;       ///< runs that had a share
  std::size_t out_of_memory = 0;  ///< of all
};

/// Seven of ten programs differ by 2 % from run to run, two by 10 %, and one by 25 %. Their memory
/// is spread evenly by its logarithm, from 2 to 60 GiB.
Program drawn_program(int number, std::mt19937_64& random) {
  std::uniform_real_distribution<double> share(0, 1);
  const double spread = share(random);
  return {"python program" + std::string(1, static_cast<char>('a' + number / 26)) +
              std::string(1, static_cast<char>('a' + number % 26)) + ".py",
          (2ULL << 30U) * std::pow(30.0, share(random)),
          spread < 0.7   ? 0.02
          : spread < 0.9 ? 0.1
                         : 0.25};
}

/// What the record says of it: the receipt of a run that ended well.
void note(Program& program, std::uint64_t peak_bytes) {
  Receipt& receipt = program.receipts.emplace_back();
  receipt.fingerprint = fingerprint_of(kAlice, program.command);
  receipt.shape = shape_of(kAlice, program.command);
  receipt.lasted_ms = 3'600'000;
  receipt.sampled_every_ms = 10'000;
  DeviceReceipt& device = receipt.devices.emplace_back();
  device.peak_bytes = peak_bytes;
  device.total_bytes = kCard;
}

Mix played_mix(unsigned seed, std::size_t count) {
  static const std::vector<double> times = recorded_run_times();
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> which_time(0, times.size() - 1);
  std::uniform_real_distribution<double> part(0, 1);
  std::vector<Program> programs;
  for (int i = 0; i < 160; ++i) programs.push_back(drawn_program(i, random));
  std::uniform_int_distribution<std::size_t> which_program(0, programs.size() - 1);
  Mix mix;
  for (std::size_t i = 0; i < count; ++i) {
    Program& program = programs[which_program(random)];
    std::normal_distribution<double> differs(0, program.spread);
    const auto need = static_cast<std::uint64_t>(
        std::min(program.median_bytes * std::exp(differs(random)), 0.97 * static_cast<double>(kCard)));
    const double lasts = times[which_time(random)];
    const auto memory = memory_by_runs(program.receipts, kAlice, program.command);
    if (memory.bytes) ++mix.promised;
    if (memory.bytes && need > *memory.bytes) {
      // It ends at some moment, and once more with a whole card.
      ++mix.out_of_memory;
      mix.runs.push_back({need, *memory.bytes, lasts * part(random)});
      mix.runs.push_back({need, kCard, lasts});
    } else {
      mix.runs.push_back({need, memory.bytes.value_or(kCard), lasts});
    }
    note(program, need);
  }
  return mix;
}

/// Until the last has ended, in seconds: first come, first served, and nobody passes the one that
/// waits.
double time_on_cards(const std::vector<PlayedRun>& runs, bool whole) {
  using Ends = std::tuple<double, std::size_t, std::uint64_t>;
  std::priority_queue<Ends, std::vector<Ends>, std::greater<>> running;
  std::array<std::uint64_t, kCards> left{};
  left.fill(kCard);
  double now = 0;
  for (const PlayedRun& run : runs) {
    const std::uint64_t wants = whole ? kCard : run.promise_bytes;
    for (;;) {
      // The fullest that has room.
      std::size_t best = kCards;
      for (std::size_t card = 0; card < kCards; ++card) {
        if (left[card] >= wants && (best == kCards || left[card] < left[best])) best = card;
      }
      if (best < kCards) {
        left[best] -= wants;
        running.emplace(now + run.lasts_s, best, wants);
        break;
      }
      const auto [ends, card, had] = running.top();
      running.pop();
      now = ends;
      left[card] += had;
    }
  }
  while (!running.empty()) {
    now = std::get<0>(running.top());
    running.pop();
  }
  return now;
}

TEST_CASE("memory auto: at most 1 % of the runs is out of memory, and the cards take half as much again") {
  std::size_t runs = 0;
  std::size_t out_of_memory = 0;
  double whole = 0;
  double shared = 0;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const Mix mix = played_mix(seed, 5000);
    REQUIRE(mix.promised > 3000);
    runs += mix.promised;
    out_of_memory += mix.out_of_memory;
    // With whole cards, none is tried twice.
    std::vector<PlayedRun> once = mix.runs;
    std::erase_if(once, [](const PlayedRun& run) { return run.need_bytes > run.promise_bytes; });
    whole += time_on_cards(once, true);
    shared += time_on_cards(mix.runs, false);
  }
  const double failed = static_cast<double>(out_of_memory) / static_cast<double>(runs);
  const double packed = whole / shared;
  MESSAGE("out of memory " << 100 * failed << " %, packing " << packed);
  CHECK(failed <= 0.01);
  CHECK(packed >= 1.5);
}

}  // namespace
}  // namespace berth::memory_packing_test
