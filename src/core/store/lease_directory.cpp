#include "berth/store/lease_directory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

// The directory is what all trust. Made complete under another name and renamed into place, so that
// nobody meets half of one; refused when strangers could remove tickets in it or when its locks
// would not be seen by all; never replaced by something weaker.
namespace berth::store {
namespace {

// The owner of the directory could remove parts of it for ever.
constexpr int kMakings = 16;
constexpr std::array<const char*, 4> kParts{"devices", "queue", "leases", "inside"};
// The folder for the outcomes of runs comes first. No lease needs it, so nobody looks for it later.
// But if the other parts are there, it is there too, whichever process was killed while they were
// made.
constexpr std::array<const char*, 5> kPartsOfMachine{kOutcomesFolder, "devices", "queue", "leases", "inside"};

struct FileSystem {
  std::int64_t type;
  const char* name;
};
// Magic numbers that linux/magic.h does not have come from the headers of their own.
constexpr std::array<FileSystem, 17> kUntrusted{{
    {NFS_SUPER_MAGIC, "NFS"},
    {SMB_SUPER_MAGIC, "SMB"},
    {0xFE534D42, "SMB 2"},
    {0xFF534D42, "CIFS"},
    {FUSE_SUPER_MAGIC, "FUSE"},
    {V9FS_MAGIC, "9p"},
    {AFS_SUPER_MAGIC, "AFS"},
    {0x6B414653, "AFS"},
    {CODA_SUPER_MAGIC, "Coda"},
    {NCP_SUPER_MAGIC, "NCP"},
    {CEPH_SUPER_MAGIC, "Ceph"},
    {OCFS2_SUPER_MAGIC, "OCFS2"},
    {0x01161970, "GFS2"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"},
    {0xAAD7AAEA, "PanFS"},
}};

mode_t mode_for(const DirectoryChoice& choice) {
  return choice.origin == DirectoryOrigin::lease ? 0700 : 01777;
}

// Reasons why one directory (the lease directory or a part of it) is not fit for use, or "".
std::string unfit(const struct stat& status, const DirectoryChoice& choice) {
  if (choice.origin == DirectoryOrigin::lease) {
    if (status.st_uid != ::geteuid()) return "it belongs to " + sys::user_name(status.st_uid);
    return "";
  }
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (others_write && (status.st_mode & S_ISVTX) == 0)
    return fmt::format(
        "anybody could remove the tickets of others: its mode {:o} lacks the sticky bit; its owner {} can "
        "mend that with chmod +t",
        status.st_mode & 07777U, sys::user_name(status.st_uid));
  return "";
}

Result<void> check(int fd, const std::string& path, const DirectoryChoice& choice,
                   std::vector<uid_t>& trusted) {
  struct stat status{};
  struct statfs system{};
  if (::fstat(fd, &status) != 0 || ::fstatfs(fd, &system) != 0) return sys::fail_errno("examining " + path);
  if (const auto name = untrusted_file_system(system.f_type))
    return fail(ErrorCode::failure,
                "{}: is on {}, where locks may not be seen by all who use the GPUs; set BERTH_DIR to a "
                "directory of this machine",
                path, *name);
  if (const std::string reason = unfit(status, choice); !reason.empty())
    return fail(ErrorCode::failure, "{}: {}", path, reason);
  const bool stranger = status.st_uid != 0 && status.st_uid != ::geteuid();
  if (stranger && std::ranges::find(trusted, status.st_uid) == trusted.end())
    trusted.push_back(status.st_uid);
  return {};
}

// Opens a directory that was just made. It is changed only through this descriptor: the owner of
// the parent could have put a link to a file of ours in its place.
Result<sys::Descriptor> open_made(int parent, const std::string& name) {
  auto made = sys::open_directory(parent, name);
  if (!made) return made;
  struct stat status{};
  if (!*made || ::fstat(made->get(), &status) != 0 || status.st_uid != ::geteuid())
    return fail(ErrorCode::failure, name + ": somebody took it away while it was made");
  return made;
}

// By a call of its own: mkdir obeys the umask.
Result<void> set_mode(const sys::Descriptor& directory, mode_t mode, const std::string& name) {
  if (::fchmod(directory.get(), mode) != 0) return sys::fail_errno("setting the mode of " + name);
  return {};
}

Result<void> make_directory(int parent, const std::string& name, mode_t mode) {
  if (::mkdirat(parent, name.c_str(), 0700) != 0) return sys::fail_errno("making " + name);
  BERTH_LET(const auto made, open_made(parent, name));
  return set_mode(made, mode, name);
}

void remove_empty(const std::string& path, std::span<const char* const> parts) {
  for (const char* part : parts) ::rmdir(fmt::format("{}/{}", path, part).c_str());
  ::rmdir(path.c_str());
}

Result<void> fill_and_rename(const std::string& beside, const std::string& path, mode_t mode,
                             std::span<const char* const> parts) {
  BERTH_LET(const auto own, open_made(AT_FDCWD, beside));
  for (const char* part : parts) {
    auto made = make_directory(own.get(), part, mode);
    if (!made) return made;
  }
  // Last, so that nobody puts something into it before.
  BERTH_DO(set_mode(own, mode, beside));
  if (!sys::rename_to_free_name(AT_FDCWD, beside.c_str(), AT_FDCWD, path.c_str()) && errno != EEXIST)
    return sys::fail_errno("making " + path);
  return {};
}

// Makes a directory with its parts and mode under another name, and then renames it. So no process
// meets half of one, and none is left if this process is killed. If another process is faster, that
// is as good.
Result<void> make_whole(const std::string& path, mode_t mode, std::span<const char* const> parts) {
  std::string beside = path + ".new-XXXXXX";
  if (::mkdtemp(beside.data()) == nullptr) return sys::fail_errno("making " + path);
  auto made = fill_and_rename(beside, path, mode, parts);
  remove_empty(beside, parts);  // fails, as it should, when it now has its name
  return made;
}

std::span<const char* const> parts_of(const DirectoryChoice& choice) {
  if (choice.origin == DirectoryOrigin::lease) return kParts;
  return kPartsOfMachine;
}

// The parts that a directory made by hand lacks. Error: it is not there, or they cannot be made.
Result<void> add_parts(const DirectoryChoice& choice) {
  BERTH_LET(const auto root, sys::open_directory(AT_FDCWD, choice.path));
  for (const char* part : parts_of(choice)) {
    const auto opened = sys::open_directory(root.get(), part);
    // It is a hint: whatever stands in its place keeps nobody from a lease.
    if (!opened && part == std::string_view(kOutcomesFolder)) continue;
    if (!opened) return std::unexpected(opened.error());
    if (*opened) continue;
    if (auto made = make_whole(fmt::format("{}/{}", choice.path, part), mode_for(choice), {}); !made)
      return made;
  }
  return {};
}

std::string trust_note(const DirectoryChoice& choice, const std::vector<uid_t>& trusted) {
  std::string names;
  for (const uid_t uid : trusted) names += (names.empty() ? "" : ", ") + sys::user_name(uid);
  return fmt::format(
      "warning: user{} {} own{} the lease directory {} and could delete leases; ask an admin to run "
      "`sudo berth init`",
      trusted.size() == 1 ? "" : "s", names, trusted.size() == 1 ? "s" : "", choice.path);
}

}  // namespace

DirectoryChoice choose_lease_directory() {
  if (const auto named = sys::variable("BERTH_DIR"); !named.empty())
    return {std::string(named), DirectoryOrigin::environment};
  struct stat status{};
  if (::lstat(kSiteDirectory, &status) == 0) return {kSiteDirectory, DirectoryOrigin::site};
  return {kFallbackDirectory, DirectoryOrigin::fallback};
}

std::optional<std::string> untrusted_file_system(std::int64_t type) {
  // f_type is signed on some machines and its numbers are not.
  const auto number = static_cast<std::int64_t>(static_cast<std::uint32_t>(type));
  const auto found = std::ranges::find(kUntrusted, number, &FileSystem::type);
  return found == kUntrusted.end() ? std::nullopt : std::optional<std::string>(found->name);
}

Result<std::optional<LeaseDirectory>> LeaseDirectory::open(const DirectoryChoice& choice) {
  LeaseDirectory directory;
  directory.choice = choice;
  auto root = sys::open_directory(AT_FDCWD, choice.path);
  if (!root) return std::unexpected(context(root.error(), "the lease directory"));
  if (!*root) return std::nullopt;
  directory.root = std::move(*root);
  std::vector<uid_t> trusted;
  if (auto fit = check(directory.root.get(), choice.path, choice, trusted); !fit)
    return std::unexpected(context(fit.error(), "the lease directory"));
  for (const auto& [part, place] :
       {std::pair{"devices", &directory.devices}, std::pair{"queue", &directory.queue},
        std::pair{"leases", &directory.leases}, std::pair{"inside", &directory.inside}}) {
    const std::string path = fmt::format("{}/{}", choice.path, part);
    auto opened = sys::open_directory(directory.root.get(), part);
    if (!opened) return std::unexpected(context(opened.error(), "the lease directory " + choice.path));
    if (!*opened) return std::nullopt;
    *place = std::move(*opened);
    if (auto fit = check(place->get(), path, choice, trusted); !fit)
      return std::unexpected(context(fit.error(), "the lease directory"));
  }
  if (!trusted.empty()) directory.notes.push_back(trust_note(choice, trusted));
  return directory;
}

Result<LeaseDirectory> LeaseDirectory::make(const DirectoryChoice& choice) {
  for (int attempt = 0; attempt < kMakings; ++attempt) {
    BERTH_LET(auto opened, open(choice));
    if (opened) return std::move(*opened);
    struct stat status{};
    const bool there = ::lstat(choice.path.c_str(), &status) == 0;
    if (auto made = there ? add_parts(choice) : make_whole(choice.path, mode_for(choice), parts_of(choice));
        !made)
      return std::unexpected(context(made.error(), "the lease directory " + choice.path));
  }
  return fail(ErrorCode::failure, "the lease directory {}: somebody removes parts of it again and again",
              choice.path);
}

bool LeaseDirectory::is_current() const {
  struct stat opened{};
  struct stat named{};
  return ::fstat(root.get(), &opened) == 0 && ::lstat(choice.path.c_str(), &named) == 0 &&
         sys::identity_of(opened) == sys::identity_of(named);
}

std::string biggest_owner(const LeaseDirectory& directory) {
  // Either the room for names is full, or that for what is in the files.
  struct Share {
    blkcnt_t blocks = 0;
    unsigned files = 0;
  };
  std::map<uid_t, Share> shares;
  for (const int part :
       {directory.root.get(), directory.devices.get(), directory.queue.get(), directory.leases.get()}) {
    const auto entries = sys::list_directory(part);
    if (!entries) continue;
    for (const sys::DirectoryEntry& entry : *entries) {
      struct stat status{};
      if (::fstatat(part, entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(status.st_mode))
        continue;
      Share& share = shares[status.st_uid];
      share.blocks += status.st_blocks;
      ++share.files;
    }
  }
  const auto biggest = std::ranges::max_element(
      shares, {}, [](const auto& each) { return std::pair(each.second.blocks, each.second.files); });
  if (biggest == shares.end()) return "nobody";
  return fmt::format("{} ({} files)", sys::user_name(biggest->first), biggest->second.files);
}

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
