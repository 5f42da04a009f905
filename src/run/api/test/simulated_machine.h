#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace berth {

/// Two simulated H100, and their lease directory, for as long as it lives.
class SimulatedMachine {
 public:
  SimulatedMachine() : path_("/tmp/berth-api-XXXXXX") {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
    const std::string scenario = path_ + "/machine.toml";
    std::ofstream(scenario) << "[[device]]\nmodel = \"H100\"\ncount = 2\n";
    std::ofstream(path_ + "/site.toml");
    ::setenv("BERTH_SITE_FILE", (path_ + "/site.toml").c_str(), 1);
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    const auto here = std::filesystem::canonical("/proc/self/exe").parent_path();
    FILE* words = ::popen((here.string() + "/sim/berth-sim " + scenario + " -- env -0").c_str(), "r");
    REQUIRE(words != nullptr);
    std::string all;
    for (int letter = 0; (letter = std::fgetc(words)) != EOF;) all.push_back(static_cast<char>(letter));
    REQUIRE(::pclose(words) == 0);
    for (std::size_t at = 0; at < all.size(); at += std::string(all.c_str() + at).size() + 1) {
      const std::string word(all.c_str() + at);
      ::setenv(word.substr(0, word.find('=')).c_str(), word.substr(word.find('=') + 1).c_str(), 1);
    }
  }
  ~SimulatedMachine() {
    // The receipt of a lease that has just ended may be written at this moment.
    std::error_code fault;
    do std::filesystem::remove_all(path_, fault);
    while (fault == std::errc::directory_not_empty);
  }

  /// What is kept of the leases that have ended.
  std::string record() const {
    std::string text;
    std::error_code none;
    const std::string receipts = std::string(std::getenv("XDG_STATE_HOME")) + "/berth/receipts";
    for (const auto& file : std::filesystem::directory_iterator(receipts, none)) {
      std::ifstream stream(file.path());
      text.append(std::istreambuf_iterator<char>(stream), {});
    }
    return text;
  }

  /// The processes that keep the receipts of its leases.
  std::vector<int> receipt_keepers() const {
    std::vector<int> found;
    std::error_code none;
    for (const auto& process : std::filesystem::directory_iterator("/proc", none)) {
      const std::string pid = process.path().filename();
      const auto text_of = [&](const char* name) {
        const std::ifstream stream(process.path() / name);
        std::ostringstream text;
        // This throws nothing if the process ends meanwhile.
        text << stream.rdbuf();
        return text.str();
      };
      if (std::ranges::all_of(pid, [](char letter) { return letter >= '0' && letter <= '9'; }) &&
          text_of("comm") == "berth __receipt\n" && text_of("environ").contains(path_))
        found.push_back(std::stoi(pid));
    }
    return found;
  }

  /// Watches of files that a process has.
  static std::size_t watches_of(int process) {
    std::size_t found = 0;
    std::error_code none;
    for (const auto& file :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", none))
      found += std::filesystem::read_symlink(file.path(), none) == "anon_inode:inotify" ? 1 : 0;
    return found;
  }

 private:
  std::string path_;
};

}  // namespace berth
