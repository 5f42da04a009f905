#include "berth/receipts/receipts_on_disk.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "../../../core/store/test/forked.h"
#include "../../../core/store/test/scratch_directory.h"
#include "berth/sys/own_folder.h"

namespace berth::receipts::receipts_on_disk_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBound = 256UL << 10U;

Receipt run_of(const std::string& program, std::int64_t ended_s = 1000) {
  Receipt receipt;
  receipt.ended_s = ended_s;
  receipt.program = program;
  receipt.fingerprint = std::hash<std::string>{}(program);
  return receipt;
}

std::string programs(const std::vector<Receipt>& receipts) {
  std::string text;
  for (const Receipt& receipt : receipts) text += receipt.program + " ";
  return text;
}

unsigned mode_of(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
}

struct Home {
  ScratchDirectory scratch;
  std::string folder = scratch.path("state/berth/receipts");
  std::string file = folder + "/" + sys::machine_word();

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder + "/" + name) << text;
  }
};

TEST_CASE("a run is noted in a file that is its user's alone, and read again") {
  const Home home;
  CHECK(read_receipts(home.folder).empty());
  REQUIRE(note_receipt(home.folder, run_of("a")));
  REQUIRE(note_receipt(home.folder, run_of("b")));
  CHECK(read_receipts(home.folder) == std::vector{run_of("a"), run_of("b")});
  CHECK(mode_of(home.folder) == 0700);
  CHECK(mode_of(home.file) == 0600);
}

TEST_CASE("several machines over one home have a file each, and all are read") {
  const Home home;
  REQUIRE(note_receipt(home.folder, run_of("here", 20)));
  home.write("gpu2-ffffffff", encode_receipt(run_of("there", 10)) + "torn");
  CHECK(programs(read_receipts(home.folder)) == "there here ");
  CHECK(programs(receipts_of_this_machine(home.folder)) == "here ");
}

TEST_CASE("what many processes note at the same moment is all there") {
  constexpr int kProcesses = 8;
  constexpr int kEach = 50;
  const Home home;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool all = true;
      for (int j = 0; j < kEach; ++j) all = note_receipt(home.folder, run_of("a")) && all;
      ::_exit(all ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  CHECK(read_receipts(home.folder).size() == kProcesses * kEach);
}

TEST_CASE("a file stays within its bound, and the newest runs stay in it") {
  const Home home;
  REQUIRE(note_receipt(home.folder, run_of("first")));
  const std::string line = encode_receipt(run_of("filling"));
  std::string text;
  while (text.size() + line.size() < kBound) text += line;
  home.write(sys::machine_word(), text);
  REQUIRE(note_receipt(home.folder, run_of("newest")));
  CHECK(fs::file_size(home.file) <= kBound / 2 + 2 * line.size());
  CHECK(read_receipts(home.folder).back().program == "newest");
  CHECK(mode_of(home.file) == 0600);
  CHECK(std::distance(fs::directory_iterator(home.folder), {}) == 1);
}

TEST_CASE("machines that come and go do not fill the home") {
  const Home home;
  REQUIRE(note_receipt(home.folder, run_of("a")));
  fs::remove(home.file);
  for (int i = 0; i < 100; ++i) {
    home.write("pod" + std::to_string(i), encode_receipt(run_of("a")));
    const timespec times[2]{{i, 0}, {i, 0}};
    ::utimensat(AT_FDCWD, (home.folder + "/pod" + std::to_string(i)).c_str(), times, 0);
  }
  REQUIRE(note_receipt(home.folder, run_of("here")));
  CHECK(std::distance(fs::directory_iterator(home.folder), {}) == 64);
  CHECK(fs::exists(home.folder + "/pod99"));
  CHECK_FALSE(fs::exists(home.folder + "/pod0"));
}

TEST_CASE("a folder that others may write in is not written, nor is what others have put there read" *
          doctest::skip(::geteuid() != 0)) {
  const Home home;
  REQUIRE(note_receipt(home.folder, run_of("a")));
  SUBCASE("others may write in the folder") {
    ::chmod(home.folder.c_str(), 0777);
  }
  SUBCASE("another user has it") {
    REQUIRE(::chown(home.folder.c_str(), 20001, 20001) == 0);
  }
  SUBCASE("it is a link") {
    fs::rename(home.folder, home.folder + ".moved");
    fs::create_symlink(home.folder + ".moved", home.folder);
  }
  CHECK_FALSE(note_receipt(home.folder, run_of("b")));
  CHECK(read_receipts(home.folder).empty());
}

TEST_CASE("a file of another user, a link and a FIFO are left alone" * doctest::skip(::geteuid() != 0)) {
  const Home home;
  REQUIRE(note_receipt(home.folder, run_of("a")));
  fs::remove(home.file);
  SUBCASE("another user's") {
    home.write(sys::machine_word(), encode_receipt(run_of("theirs")));
    REQUIRE(::chown(home.file.c_str(), 20001, 20001) == 0);
  }
  SUBCASE("a link") {
    fs::create_symlink("/dev/null", home.file);
  }
  SUBCASE("a FIFO") {
    REQUIRE(::mkfifo(home.file.c_str(), 0600) == 0);
  }
  CHECK_FALSE(note_receipt(home.folder, run_of("b")));
  CHECK(read_receipts(home.folder).empty());
}

TEST_CASE("a disk that takes a part of a line loses that line, and no other") {
  const Home home;
  REQUIRE(note_receipt(home.folder, run_of("before")));
  const Forked limited([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit most{fs::file_size(home.file) + 20, fs::file_size(home.file) + 20};
    return ::setrlimit(RLIMIT_FSIZE, &most) == 0 && !note_receipt(home.folder, run_of("lost"));
  });
  CHECK(limited.succeeded());
  REQUIRE(note_receipt(home.folder, run_of("after")));
  CHECK(programs(read_receipts(home.folder)) == "before after ");
}

TEST_CASE("what is forgotten is gone on all machines, and only that") {
  const Home home;
  REQUIRE(note_receipt(home.folder, run_of("a", 1)));
  REQUIRE(note_receipt(home.folder, run_of("b", 2)));
  home.write("gpu2-ffffffff", encode_receipt(run_of("a", 3)) + encode_receipt(run_of("c", 4)));
  CHECK(forget_receipts(home.folder, "a") == 2U);
  CHECK(programs(read_receipts(home.folder)) == "b c ");
  REQUIRE(note_receipt(home.folder, run_of("d", 5)));
  CHECK(forget_receipts(home.folder, "none") == 0U);
  CHECK(forget_receipts(home.folder, "") == 3U);
  CHECK(fs::is_empty(home.folder));
}

}  // namespace
}  // namespace berth::receipts::receipts_on_disk_test
