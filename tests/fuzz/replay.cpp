// Feeds each target its corpus, and changes of it for a while, without a fuzzer: what `./dev fuzz`
// found once stays found, in every build. An input that ends the program is written to fuzz-found
// first.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "targets.h"

extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Random = std::mt19937_64;

std::string g_input;

void keep_input() {
  const int file = ::open("fuzz-found", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  (void)!::write(file, g_input.data(), g_input.size());
}

void keep_input_at(int) {
  keep_input();
  std::_Exit(1);
}

void read(const berth::fuzz::Target& target, std::string input) {
  g_input = std::move(input);
  target.read(g_input);
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> corpus_of(const fs::path& folder) {
  std::vector<std::string> texts;
  for (const auto& entry : fs::directory_iterator(folder)) texts.push_back(text_of(entry.path()));
  return texts;
}

std::size_t below(Random& random, std::size_t bound) {
  return std::uniform_int_distribution<std::size_t>(0, bound)(random);
}

/// A byte changed, a piece taken out, doubled, or put in from another.
std::string changed(std::string text, const std::vector<std::string>& corpus, Random& random) {
  for (std::size_t times = below(random, 3) + 1; times > 0; --times) {
    const std::size_t at = below(random, text.size());
    const std::size_t length = below(random, std::min<std::size_t>(32, text.size() - at));
    const std::string& other = corpus[below(random, corpus.size() - 1)];
    switch (below(random, 3)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(below(random, 255));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.insert(at, other.substr(below(random, other.size()), length + 1));
    }
  }
  return text;
}

std::size_t feed(const berth::fuzz::Target& target, const fs::path& corpus_folder, Clock::duration period,
                 std::uint64_t seed) {
  const std::vector<std::string> corpus = corpus_of(corpus_folder / target.name);
  berth::fuzz::require(!corpus.empty(), "each target has a corpus");
  for (const std::string& text : corpus) read(target, text);
  std::size_t count = corpus.size();
  Random random(seed);
  for (const auto end = Clock::now() + period; Clock::now() < end; ++count)
    read(target, changed(corpus[below(random, corpus.size() - 1)], corpus, random));
  return count;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> given(words, words + count);
  if (given.size() < 3) {
    std::fprintf(stderr, "fuzz_replay CORPUS MILLISECONDS [SEED]: of changed inputs for each target\n");
    return 2;
  }
  const std::chrono::milliseconds period(std::stol(given[2]));
  const std::uint64_t seed = given.size() > 3 ? std::stoull(given[3]) : std::random_device()();
  if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);
  std::signal(SIGABRT, keep_input_at);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (const berth::fuzz::Target& target : berth::fuzz::targets()) {
    std::printf("%.*s: ", static_cast<int>(target.name.size()), target.name.data());
    std::fflush(stdout);
    std::printf("%zu inputs\n", feed(target, given[1], period, seed));
  }
  return 0;
}
