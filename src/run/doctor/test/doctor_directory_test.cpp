#include "berth/doctor/doctor_directory.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "../../../core/store/test/scratch_directory.h"

namespace berth::doctor::doctor_directory_test {
namespace {

namespace fs = std::filesystem;

/// A lease directory that nothing is wrong with, in a place that is nobody's /tmp.
struct Fixture {
  ScratchDirectory scratch;
  store::DirectoryChoice choice{scratch.path("leases"), store::DirectoryOrigin::environment};

  void make() const { REQUIRE(store::LeaseDirectory::make(choice)); }

  /// What was found about `check`: /tmp and /tmp/berth are the machine's own, and not this test's.
  std::vector<Finding> examine(std::string_view check) const {
    std::vector<Finding> findings = examine_lease_directory(choice, {"GPU-1"});
    std::erase_if(findings, [&](const Finding& finding) { return finding.check != check; });
    return findings;
  }

  Finding only(std::string_view check) const {
    const auto findings = examine(check);
    REQUIRE(findings.size() == 1);
    return findings.front();
  }
};

}  // namespace

TEST_CASE("a directory that is not there yet is no fault") {
  const Fixture fixture;
  const Finding found = fixture.only("lease directory");
  CHECK(found.level == view::Level::pass);
  CHECK(found.found ==
        fixture.choice.path + " (BERTH_DIR names it) does not exist yet; the first lease makes it");
  CHECK_FALSE(fs::exists(fixture.choice.path));
}

TEST_CASE("a directory in which others could remove tickets fails, with the remedy") {
  const Fixture fixture;
  fixture.make();
  fs::permissions(fixture.choice.path + "/queue", fs::perms::all);
  const Finding found = fixture.only("lease directory");
  CHECK(found.level == view::Level::fail);
  CHECK(found.found.find("queue") != std::string::npos);
  CHECK(found.remedy.find("sudo berth init") != std::string::npos);
}

TEST_CASE("a file that is no ticket is named, with its owner") {
  const Fixture fixture;
  fixture.make();
  std::ofstream(fixture.choice.path + "/leases/letter") << "dear all";
  const Finding found = fixture.only("tickets");
  CHECK(found.level == view::Level::warn);
  CHECK(found.found.starts_with("letter of "));
  CHECK_FALSE(found.remedy.empty());
}

TEST_CASE("a device file that is not root's in root's directory is named") {
  if (::geteuid() != 0) return;
  const Fixture fixture;
  fixture.make();
  const std::string file = fixture.choice.path + "/devices/GPU-1";
  std::ofstream{file};
  const std::string of_no_device = fixture.choice.path + "/devices/GPU-1 1666";
  std::ofstream{of_no_device};
  REQUIRE(::chown(of_no_device.c_str(), 12345, 12345) == 0);
  CHECK(fixture.examine("device files").empty());
  REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
  const Finding found = fixture.only("device files");
  CHECK(found.level == view::Level::warn);
  CHECK(found.found.find("12345 owns some") != std::string::npos);
}

}  // namespace berth::doctor::doctor_directory_test
