#include "berth/store/outcome_files.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "berth/store/test/directory_lab.h"
#include "berth/store/test/forked.h"

namespace berth::store::outcome_files_test {
namespace {

PastRun failed_at(Moment begun) {
  return {0x1234, begun, 10, Ending::no_cuda, {"GPU-a"}};
}

/// A lease directory that has been used.
struct UsedLab : Lab {
  UsedLab() { take(*open(), "GPU-a").reset(); }

  std::string own_file() const { return file("outcomes/" + std::to_string(::geteuid())); }
  std::vector<Moment> begun() const {
    std::vector<Moment> all;
    for (const UserRuns& user : open()->outcomes()) {
      for (const PastRun& run : user.runs) all.push_back(run.begun);
    }
    return all;
  }
};

/// From now on this process cannot rename: EIO.
bool deny_renames() {
  std::array<sock_filter, 5> filter{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 1, 0),
                                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
                                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
                                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  sock_fprog program{filter.size(), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_CASE("a run that is written only in part is not noted, and costs the next one nothing") {
  const UsedLab lab;
  REQUIRE(lab.open()->note_outcome(failed_at(1)));
  const std::uintmax_t size = std::filesystem::file_size(lab.own_file());
  const Forked full_disk([&] {
    // The first write beyond the limit takes a part, as on a full disk.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{size + 10, size + 10};
    return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && !lab.open()->note_outcome(failed_at(2));
  });
  CHECK(full_disk.succeeded());
  CHECK(std::filesystem::file_size(lab.own_file()) == size + 10);
  CHECK(lab.open()->note_outcome(failed_at(3)));
  CHECK(lab.begun() == std::vector<Moment>{1, 3});
}

TEST_CASE("a run is not noted where the new file cannot take the place of the old one") {
  const UsedLab lab;
  // Of another boot: so the next run replaces it.
  write_file(lab.own_file(), "berth-outcomes 1 another\n");
  const Forked unlucky([&] { return deny_renames() && !lab.open()->note_outcome(failed_at(1)); });
  CHECK(unlucky.succeeded());
  const std::filesystem::directory_iterator files(lab.file("outcomes"));
  CHECK(std::distance(begin(files), end(files)) == 1);
  CHECK(lab.open()->note_outcome(failed_at(1)));
  CHECK(lab.begun() == std::vector<Moment>{1});
}

TEST_CASE("a user who fills the folder with names hides nobody's runs, and no file is added for each") {
  const UsedLab lab;
  // What others have made comes first by name, and a folder has the place of this user's file.
  std::filesystem::create_directory(lab.own_file());
  for (int i = 0; i < 600; ++i) std::filesystem::create_directory(fmt::format("{}-{:03}", lab.own_file(), i));
  for (Moment run = 1; run <= 3; ++run) CHECK(lab.open()->note_outcome(failed_at(run)));
  CHECK(lab.begun() == std::vector<Moment>{1, 2, 3});
  const std::filesystem::directory_iterator files(lab.file("outcomes"));
  CHECK(std::count_if(begin(files), end(files), [](const auto& file) { return file.is_regular_file(); }) ==
        1);
}

TEST_CASE("where a user's file cannot be found among the names that others made, none is added") {
  const UsedLab lab;
  REQUIRE(lab.open()->note_outcome(failed_at(1)));
  std::filesystem::rename(lab.own_file(), lab.own_file() + "-a");
  for (int i = 0; i < (1 << 14); ++i)
    std::filesystem::create_directory(fmt::format("{}-{:05}", lab.own_file(), i));
  CHECK_FALSE(lab.open()->note_outcome(failed_at(2)));
  const std::filesystem::directory_iterator files(lab.file("outcomes"));
  CHECK(std::count_if(begin(files), end(files), [](const auto& file) { return file.is_regular_file(); }) ==
        1);
}

TEST_CASE("what others may write is nobody's outcome") {
  const UsedLab lab;
  REQUIRE(lab.open()->note_outcome(failed_at(1)));
  std::filesystem::permissions(lab.own_file(), std::filesystem::perms(0646));
  CHECK(lab.begun().empty());
}

}  // namespace
}  // namespace berth::store::outcome_files_test
