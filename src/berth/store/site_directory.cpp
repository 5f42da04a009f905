// Tickets are safe from other users if the directory belongs to root and is sticky. Device files
// are safe if they belong to root. A user may have made the directory already, and it may be in
// use. Then it is repaired in place, because a new directory or file would have other locks.

#include "berth/store/site_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ranges>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/store/device_locks.h"
#include "berth/store/directory_scan.h"
#include "berth/sys/file.h"
#include "berth/sys/system_error.h"

namespace berth::store {
namespace {

constexpr mode_t kDirectoryMode = 01777;
constexpr mode_t kFileMode = 01666;
constexpr mode_t kAllModeBits = 07777;
constexpr std::string_view kHeader =
    "# Written by `berth init`: the lease directory that all users of this machine share. See "
    "tmpfiles.d(5).\n";
constexpr const char* kTmpfiles = "/etc/tmpfiles.d";

// True: it was not root's, or had another mode.
Result<bool> give_to_root(int file, const struct stat& status, mode_t mode) {
  if (status.st_uid == 0 && status.st_gid == 0 && (status.st_mode & kAllModeBits) == mode) return false;
  if (::fchown(file, 0, 0) != 0 || ::fchmod(file, mode) != 0) return sys::fail_errno("making it root's");
  return true;
}

// Which of the directory and its parts were not root's, by their paths. The directory comes first:
// once it is root's, nobody else can put anything in the place of a part.
// `modes_too`: also those of root's whose mode is another than that of /run/berth.
Result<std::vector<std::string>> give_parts_to_root(const std::string& path, bool modes_too) {
  std::vector<std::string> mended;
  BERTH_LET(const auto directory, sys::open_directory(AT_FDCWD, path));
  if (!directory) return mended;
  for (const char* part : {".", "devices", "queue", "leases", "inside", kOutcomesFolder}) {
    const std::string name = part == std::string_view(".") ? path : fmt::format("{}/{}", path, part);
    const auto opened = sys::open_directory(directory.get(), part);
    // It is a hint: whatever stands in its place keeps nobody from a lease.
    if (!opened && part == std::string_view(kOutcomesFolder)) continue;
    if (!opened) return std::unexpected(context(opened.error(), name));
    struct stat status{};
    if (!*opened || ::fstat(opened->get(), &status) != 0) continue;
    if (status.st_uid == 0 && !modes_too) continue;
    const auto was_others = give_to_root(opened->get(), status, kDirectoryMode);
    if (!was_others) return std::unexpected(context(was_others.error(), name));
    if (*was_others) mended.push_back(name);
  }
  return mended;
}

Result<void> make_if_missing(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return sys::fail_errno("making " + path);
  return {};
}

class Site {
 public:
  Site(std::string root, std::string boot_lines)
      : root_(std::move(root)), path_(root_ + kSiteDirectory), more_boot_lines_(std::move(boot_lines)) {}

  Result<SiteDirectory> make(const std::vector<std::string>& uuids, bool force) {
    if (!force && ::access(path_.c_str(), F_OK) != 0) BERTH_DO(check_elsewhere());
    BERTH_DO(make_if_missing(root_ + "/run"));
    BERTH_DO(directory());
    BERTH_DO(device_files(uuids));
    BERTH_DO(boot_lines());
    look_elsewhere();
    return std::move(site_);
  }

 private:
  Result<void> directory() {
    const bool is_there = ::access(path_.c_str(), F_OK) == 0;
    BERTH_LET(const auto mended, give_parts_to_root(path_, true));
    for (const std::string& path : mended)
      site_.done.push_back(fmt::format("{} is root's now, and nobody can remove others' files there", path));
    BERTH_LET(auto made, LeaseDirectory::make({path_, DirectoryOrigin::site}));
    directory_ = std::move(made);
    outcomes_folder();
    if (!is_there) site_.done.push_back(fmt::format("made {}", path_));
    return {};
  }

  // A directory that an earlier version made has no such folder.
  void outcomes_folder() {
    const int root = directory_.root.get();
    if (const auto there = sys::open_directory(root, kOutcomesFolder); there && *there) return;
    const std::string path = fmt::format("{}/{}", path_, kOutcomesFolder);
    const bool is_made = ::mkdirat(root, kOutcomesFolder, 0700) == 0;
    const auto made = is_made ? sys::open_directory(root, kOutcomesFolder) : Result<sys::Descriptor>();
    if (made && *made && ::fchmod(made->get(), kDirectoryMode) == 0)
      site_.done.push_back(fmt::format("made {}", path));
    else
      site_.trouble.push_back(fmt::format(
          "{} is no folder and cannot be made: it is not remembered on which GPUs runs fail; remove what "
          "stands there, and call berth init again",
          path));
  }

  Result<void> device_files(const std::vector<std::string>& uuids) {
    std::size_t made = 0;
    for (const std::string& uuid : uuids) {
      const std::string name = device_file_name(uuid);
      if (sys::identity_of(directory_.devices.get(), name)) continue;
      BERTH_LET(const auto file, sys::make_unnamed(directory_.devices.get(), kFileMode));
      BERTH_LET(const auto named, sys::give_name(file.get(), directory_.devices.get(), name));
      made += named ? 1 : 0;
    }
    if (made > 0) site_.done.push_back(fmt::format("made {} device file{}", made, made == 1 ? "" : "s"));
    return mend_device_files();
  }

  Result<void> mend_device_files() {
    BERTH_LET(const auto entries, sys::list_directory(directory_.devices.get()));
    for (const sys::DirectoryEntry& entry : entries) {
      const auto file = sys::open_prepared(directory_.devices.get(), entry.name, O_RDONLY);
      struct stat status{};
      const bool there = file && *file && ::fstat(file->get(), &status) == 0;
      // If the file has a second name elsewhere, the change would open that file to all users too.
      if (!there || status.st_nlink != 1) {
        site_.trouble.push_back(fmt::format("{}/devices/{} is not a device file: {}", path_, entry.name,
                                            file ? "it has another name too" : file.error().message));
        continue;
      }
      const auto mended = give_to_root(file->get(), status, kFileMode);
      if (!mended) return std::unexpected(context(mended.error(), entry.name));
      if (*mended) site_.done.push_back(fmt::format("{}/devices/{} is root's now", path_, entry.name));
      devices_.push_back(entry.name);
    }
    return {};
  }

  std::string boot_text() const {
    std::string text(kHeader);
    for (const char* part : {"", "/devices", "/queue", "/leases", "/inside", "/outcomes"})
      text += fmt::format("d {}{} 1777 root root -\n", kSiteDirectory, part);
    for (const std::string& name : devices_)
      text += fmt::format("f {}/devices/{} 1666 root root -\n", kSiteDirectory, name);
    return text + more_boot_lines_;
  }

  // /run is empty after a boot; without this whoever comes first would make the directory, or use
  // another.
  Result<void> boot_lines() {
    std::ranges::sort(devices_);
    const std::string folder = root_ + kTmpfiles;
    const std::string path = folder + "/berth.conf";
    const std::string text = boot_text();
    const auto there = sys::read_whole(path);
    if (there && *there == text) return {};
    if (there && !there->starts_with(kHeader)) {
      site_.trouble.push_back(fmt::format("{} was not written by berth init and is left as it is", path));
      return {};
    }
    BERTH_DO(make_if_missing(root_ + "/etc"));
    BERTH_DO(make_if_missing(folder));
    BERTH_DO(sys::replace_file(path, text, 0644));
    site_.done.push_back(fmt::format("wrote {}, which makes all of it again at each boot", path));
    return {};
  }

  // From now on, others find the new lease directory.
  Result<void> check_elsewhere() const {
    const std::string live = live_elsewhere();
    if (live.empty()) return {};
    return fail(ErrorCode::not_now,
                "{}{} is in use: {}. After `berth init` new jobs use {} and do not see these leases, so "
                "their GPUs could be granted twice. Let these jobs end first, or accept that with --force",
                root_, kFallbackDirectory, live, path_);
  }

  void look_elsewhere() {
    const std::string live = live_elsewhere();
    if (live.empty()) return;
    site_.trouble.push_back(fmt::format(
        "{}{} is in use: {}. New jobs use {} and do not see these leases, so their GPUs can be granted "
        "twice until these jobs have ended",
        root_, kFallbackDirectory, live, path_));
  }

  // "alice (python train.py) has GPU-8a1c…, bob (vi) waits"; "": nobody.
  std::string live_elsewhere() const {
    const auto directory = LeaseDirectory::open({root_ + kFallbackDirectory, DirectoryOrigin::fallback});
    if (!directory || !*directory) return "";
    const auto scan = scan_directory(**directory);
    if (!scan) return "";
    constexpr std::size_t kNamed = 8;
    std::string live;
    const std::vector<Ticket>& tickets = scan->ledger.tickets;
    for (const Ticket& ticket : tickets | std::views::take(kNamed)) {
      live += fmt::format("{}{} ({})", live.empty() ? "" : ", ", sys::user_name(ticket.uid),
                          printable(ticket.command));
      live += ticket.phase == TicketPhase::waiting
                  ? " waits"
                  : fmt::format(" has {}", printable(fmt::format("{}", fmt::join(ticket.devices, " and "))));
    }
    if (tickets.size() > kNamed) live += fmt::format(" and {} more", tickets.size() - kNamed);
    return live;
  }

  std::string root_;
  std::string path_;
  std::string more_boot_lines_;
  LeaseDirectory directory_;
  std::vector<std::string> devices_;  // names of the device files that are as they should be
  SiteDirectory site_;
};

}  // namespace

Result<SiteDirectory> make_site_directory(const std::string& root, const std::vector<std::string>& uuids,
                                          bool force, const std::string& boot_lines) {
  return Site(root, boot_lines).make(uuids, force);
}

Result<void> make_directory_of_root(const DirectoryChoice& choice) {
  BERTH_DO(give_parts_to_root(choice.path, false));
  BERTH_DO(LeaseDirectory::make(choice));
  return {};
}

}  // namespace berth::store
