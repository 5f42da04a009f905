#include "berth/store/private_tmp.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/base/text_match.h"
#include "berth/sys/file.h"
#include "berth/sys/process_identity.h"

namespace berth::store {
namespace {

constexpr std::string_view kTmp = "/tmp";

/// A line of mountinfo (proc_pid_mountinfo(5)): "36 35 8:1 /folder /tmp rw master:1 - ext4 …".
struct Mount {
  std::string_view id, parent;
  std::string_view device;
  std::string_view folder;  ///< which folder of its file system is mounted
  std::string_view point;
  std::string_view type;
  bool is_copy = false;  ///< of a mount in the namespace from which this one was made
};

std::optional<Mount> mount_of(std::string_view line) {
  const auto words = parts_at(line, ' ');
  const auto dash = std::ranges::find(words, "-");
  constexpr std::size_t kFixed = 6;
  if (words.size() <= kFixed || std::cmp_less(dash - words.begin(), kFixed) || words.end() - dash < 2)
    return std::nullopt;
  Mount mount{words[0], words[1], words[2], words[3], words[4], dash[1]};
  mount.is_copy = std::any_of(words.begin() + kFixed, dash,
                              [](std::string_view word) { return word.starts_with("master:"); });
  return mount;
}

std::vector<Mount> mounts_of(std::string_view text) {
  std::vector<Mount> mounts;
  for (const std::string_view line : parts_at(text, '\n')) {
    if (const auto mount = mount_of(line)) mounts.push_back(*mount);
  }
  return mounts;
}

/// Of the mounts one over the other at this point, the one that is seen. nullptr: there is none.
const Mount* seen_at(std::string_view point, const std::vector<Mount>& mounts) {
  const auto is_covered = [&](const Mount& below) {
    return std::ranges::any_of(mounts, [&](const Mount& above) {
      return above.point == point && above.parent == below.id && &above != &below;
    });
  };
  for (const Mount& mount : mounts) {
    if (mount.point == point && !is_covered(mount)) return &mount;
  }
  return nullptr;
}

bool is_below(std::string_view folder, std::string_view other) {
  if (other == "/") return folder != "/";
  return folder.starts_with(other) && folder.substr(other.size()).starts_with('/');
}

bool is_tmp_of(std::string_view folder, std::string_view root) {
  return folder == fmt::format("{}{}", root == "/" ? "" : root, kTmp);
}

/// It shows a folder that has another name here, so the tree of the machine is seen, but not the
/// /tmp of this tree. If the folder is the /tmp of a tree that is seen, the mount hides nothing:
/// systemd mounts /tmp on itself for ReadWritePaths, and containers mount the machine's.
bool is_folder_from_elsewhere(const Mount& tmp, const std::vector<Mount>& mounts) {
  bool has_other_name = false;
  for (const Mount& mount : mounts) {
    if (&mount == &tmp || mount.device != tmp.device) continue;
    if (is_tmp_of(tmp.folder, mount.folder)) return false;
    has_other_name = has_other_name || is_below(tmp.folder, mount.folder);
  }
  return has_other_name;
}

bool covers_another_tmp(const Mount& tmp, const std::vector<Mount>& mounts) {
  return std::ranges::any_of(mounts, [&](const Mount& below) {
    return below.point == kTmp && below.id == tmp.parent &&
           (below.device != tmp.device || below.folder != tmp.folder);
  });
}

std::string mount_in_words(const Mount& tmp) {
  return tmp.folder == "/" ? fmt::format("a {} of its own", printable(tmp.type))
                           : fmt::format("the folder {}", printable(tmp.folder));
}

/// The number of a namespace. nullopt: it is not known.
std::optional<std::uint64_t> number_of_namespace(const std::string& link) {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  if (length <= 0) return std::nullopt;
  std::string_view rest(text.data(), static_cast<std::size_t>(length));
  rest.remove_prefix(std::min(rest.find('[') + 1, rest.size()));
  return number_from_text<std::uint64_t>(rest.substr(0, rest.find(']')));
}

/// The namespaces that the kernel makes as it starts have these numbers (init_namespaces in
/// linux/proc_ns.h and nsfs.h). Kernels before 6.18 gave the first mount namespace one of the two
/// lowest of the others; whatever is made after the boot has a higher one.
bool is_first_namespace(const std::string& link) {
  constexpr std::uint64_t kLowest = 0xEFFFFFF8;
  constexpr std::uint64_t kHighest = 0xF0000001;
  const auto number = number_of_namespace(link);
  return number && *number >= kLowest && *number <= kHighest;
}

/// `process`: its folder in /proc.
std::optional<bool> has_this_tmp(const std::string& process) {
  struct stat ours{};
  struct stat theirs{};
  if (::stat("/tmp", &ours) != 0 || ::stat((process + "/root/tmp").c_str(), &theirs) != 0)
    return std::nullopt;
  return sys::identity_of(ours) == sys::identity_of(theirs);
}

// The kernel lets nobody look at the processes of others, so no other user decides here.
std::optional<bool> have_first_mounts_this_tmp() {
  for (const pid_t pid : sys::processes_here()) {
    const std::string process = fmt::format("/proc/{}", pid);
    if (!is_first_namespace(process + "/ns/mnt")) continue;
    std::array<char, 2> root{};
    // A process that has changed its root has another /tmp there.
    if (::readlink((process + "/root").c_str(), root.data(), root.size()) != 1) continue;
    if (const auto has = has_this_tmp(process)) return has;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> mounted_on_private_tmp(const TmpFacts& facts) {
  if (facts.is_first_mounts || facts.as_first_mounts == true) return std::nullopt;
  if (facts.is_first_pids && facts.as_first_process == true) return std::nullopt;
  const std::vector<Mount> mounts = mounts_of(facts.mounts);
  const Mount* const tmp = seen_at(kTmp, mounts);
  const Mount* const root = seen_at("/", mounts);
  if (tmp == nullptr || root == nullptr || root->type == "overlay") return std::nullopt;
  // The lease directory of the machine was mounted there by whoever gave this session its /tmp.
  if (seen_at(kFallbackDirectory, mounts) != nullptr) return std::nullopt;
  const bool is_new = facts.is_first_pids && root->is_copy && !tmp->is_copy;
  const bool is_private = facts.as_first_mounts == false || facts.as_first_process == false ||
                          is_folder_from_elsewhere(*tmp, mounts) || covers_another_tmp(*tmp, mounts) ||
                          (is_new && tmp->folder == "/");
  return is_private ? std::optional(mount_in_words(*tmp)) : std::nullopt;
}

std::optional<std::string> mounted_on_private_tmp(const DirectoryChoice& choice) {
  if (!is_below(choice.path, kTmp) || is_first_namespace("/proc/self/ns/mnt")) return std::nullopt;
  const std::string mounts = sys::read_whole("/proc/self/mountinfo").value_or("");
  TmpFacts facts{mounts, false, is_first_namespace("/proc/self/ns/pid"), has_this_tmp("/proc/1")};
  // All processes are asked only where the first one does not decide.
  if (!facts.is_first_pids || facts.as_first_process != true)
    facts.as_first_mounts = have_first_mounts_this_tmp();
  return mounted_on_private_tmp(facts);
}

}  // namespace berth::store
