#include "berth/store/lease_directory.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace berth::store::private_tmp_test {
namespace {

constexpr const char* kRoot = "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n";
// In a mount namespace that systemd, bubblewrap or a user namespace has made of the machine's.
constexpr const char* kRootOfCopy = "22 1 8:1 / / rw shared:301 master:1 - ext4 /dev/sda1 rw\n";
constexpr const char* kTmpfsAtBoot = "31 22 0:27 / /tmp rw shared:307 master:7 - tmpfs tmpfs rw\n";
constexpr const char* kOverlay = "22 1 0:90 / / rw master:9 - overlay overlay rw,lowerdir=/x\n";

struct Row {
  const char* what;
  std::string mounts;
  std::string mounted;  ///< "": it is the machine's /tmp
  bool first_pids = true;
};

std::string found(const TmpFacts& facts) {
  return mounted_on_private_tmp(facts).value_or("");
}

}  // namespace

TEST_CASE("a /tmp of a session is told from the machine's by what is mounted") {
  const std::string copy = kRootOfCopy;
  for (const Row& row : std::vector<Row>{
           {"nothing is mounted", kRoot, ""},
           {"a tmpfs since the boot", std::string(kRoot) + "31 22 0:27 / /tmp rw shared:7 - tmpfs tmpfs rw\n",
            ""},
           {"the same, seen by a service", copy + kTmpfsAtBoot, ""},
           {"ReadWritePaths=/tmp", copy + "36 22 8:1 /tmp /tmp rw shared:310 master:1 - ext4 /dev/sda1 rw\n",
            ""},
           {"ReadWritePaths=/tmp over a tmpfs",
            copy + kTmpfsAtBoot + "36 31 0:27 / /tmp rw shared:310 master:7 - tmpfs tmpfs rw\n", ""},
           {"PrivateTmp",
            copy +
                "36 22 8:1 /tmp/systemd-private-1f-x/tmp /tmp rw shared:310 master:1 - ext4 /dev/sda1 rw\n",
            "the folder /tmp/systemd-private-1f-x/tmp"},
           {"PrivateTmp over a tmpfs",
            copy + kTmpfsAtBoot +
                "36 31 0:27 /systemd-private-1f-x/tmp /tmp rw shared:310 master:7 - tmpfs tmpfs rw\n",
            "the folder /systemd-private-1f-x/tmp"},
           {"PrivateTmp=disconnected", copy + "36 22 0:55 / /tmp rw shared:310 - tmpfs tmpfs rw\n",
            "a tmpfs of its own"},
           {"a sandbox over a tmpfs, all private",
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n31 22 0:27 / /tmp rw - tmpfs tmpfs rw\n"
            "36 31 0:55 / /tmp rw - tmpfs tmpfs rw\n",
            "a tmpfs of its own"},
           {"pam_namespace",
            copy + "36 22 8:1 /tmp-inst/alice /tmp rw shared:310 master:1 - ext4 /dev/sda1 rw\n",
            "the folder /tmp-inst/alice"},
           {"a job of Slurm",
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 259:1 / /scratch rw - xfs /dev/nvme0n1 rw\n"
            "41 22 259:1 /7/.7 /tmp rw - xfs /dev/nvme0n1 rw\n",
            "the folder /7/.7"},
           {"a subvolume for everybody",
            "22 1 0:30 /@/.snapshots/1/snapshot / rw master:1 - btrfs /dev/sda1 rw\n"
            "31 22 0:30 /@/tmp /tmp rw master:7 - btrfs /dev/sda1 rw\n",
            ""},
       }) {
    CAPTURE(row.what);
    CHECK(found({.mounts = row.mounts, .is_first_pids = row.first_pids}) == row.mounted);
  }
}

TEST_CASE("a container is refused nothing: it does not see the tree of the machine") {
  const std::string overlay = kOverlay;
  for (const Row& row : std::vector<Row>{
           {"nothing is mounted", overlay, ""},
           {"a tmpfs", overlay + "36 22 0:55 / /tmp rw - tmpfs tmpfs rw\n", ""},
           {"a volume", overlay + "36 22 8:1 /var/lib/docker/volumes/v/_data /tmp rw master:1 - ext4 x rw\n",
            ""},
           {"a volume that has another name there",
            overlay + "35 22 8:2 / /data rw - ext4 x rw\n36 22 8:2 /data/t /tmp rw - ext4 x rw\n", ""},
           {"a system container with a tmpfs since its boot",
            std::string(kRootOfCopy) + "36 22 0:55 / /tmp rw shared:310 - tmpfs tmpfs rw\n", "", false},
           {"an unpacked image with the /tmp of the machine",
            "22 1 8:1 /home/u/image / rw master:1 - ext4 x rw\n36 22 8:1 /tmp /tmp rw master:1 - ext4 x rw\n",
            ""},
           {"the same, beside the whole machine",
            "22 1 8:1 /home/u/image / rw master:1 - ext4 x rw\n35 22 8:1 / /run/host rw master:1 - ext4 x "
            "rw\n"
            "36 22 8:1 /tmp /tmp rw master:1 - ext4 x rw\n",
            ""},
       }) {
    CAPTURE(row.what);
    CHECK(found({.mounts = row.mounts, .is_first_pids = row.first_pids}) == row.mounted);
  }
}

TEST_CASE("what is known better than by the mounts counts more") {
  const std::string bound = std::string(kRoot) + "36 22 8:1 /data/tmp /tmp rw shared:5 - ext4 /dev/sda1 rw\n";
  CHECK(found({.mounts = bound, .is_first_pids = true}) == "the folder /data/tmp");
  // An admin has mounted it for all.
  CHECK(found({.mounts = bound, .is_first_mounts = true, .is_first_pids = true}).empty());
  CHECK(found({.mounts = bound, .is_first_pids = true, .as_first_process = true}).empty());
  CHECK(found({.mounts = bound, .as_first_mounts = true}).empty());
  // It looks like the machine's, but is not: a process outside has another.
  const std::string disk = "30 22 259:1 / /scratch rw shared:5 - xfs /dev/nvme0n1 rw\n";
  const std::string as_of_all = kRoot + disk + "36 22 259:1 /tmp /tmp rw shared:5 - xfs /dev/nvme0n1 rw\n";
  CHECK(found({.mounts = as_of_all, .is_first_pids = true}).empty());
  CHECK(found({.mounts = as_of_all, .is_first_pids = true, .as_first_mounts = false}) == "the folder /tmp");
  // The first process of a sandbox is in the sandbox.
  CHECK(found({.mounts = bound, .as_first_process = true}) == "the folder /data/tmp");
  const std::string tmpfs = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n36 22 0:55 / /tmp rw - tmpfs tmpfs rw\n";
  CHECK(found({.mounts = tmpfs, .is_first_pids = true}).empty());
  CHECK(found({.mounts = tmpfs, .is_first_pids = true, .as_first_process = false}) == "a tmpfs of its own");
  // Somebody has mounted the lease directory of the machine there.
  CHECK(found({.mounts = bound + "37 36 8:1 /tmp/berth /tmp/berth rw - ext4 /dev/sda1 rw\n"}).empty());
}

TEST_CASE("a text that is no list of mounts says nothing") {
  for (const char* text : {"", "36 22", "\n\n", "36 22 8:1 /x /tmp rw -", "a b c d /tmp f - g h\n"}) {
    CAPTURE(text);
    CHECK(found({.mounts = text}).empty());
  }
}

TEST_CASE("only a directory below /tmp is asked about") {
  CHECK_FALSE(mounted_on_private_tmp(DirectoryChoice{"/run/berth", DirectoryOrigin::site}));
  CHECK_FALSE(mounted_on_private_tmp(DirectoryChoice{"/tmpfiles/berth", DirectoryOrigin::environment}));
}

}  // namespace berth::store::private_tmp_test
