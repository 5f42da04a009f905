// Tickets are safe from other users if the directory belongs to root and is sticky. Device files
// are safe if they belong to root. A user may have made the directory already, and it may be in
// use. Then it is repaired in place, because a new directory or file would have other locks.

#include "berth/store/lease_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <string_view>

#include "berth/base/text.h"
#include "berth/store/directory_ticket.h"
#include "berth/sys/file.h"

namespace berth::store {
namespace {

constexpr mode_t kDirectoryMode = 01777;
constexpr mode_t kFileMode = 01666;
constexpr mode_t kAllModeBits = 07777;
constexpr std::string_view kHeader =
    "# Written by `berth init`: the lease directory that all users of this machine share. See "
    "tmpfiles.d(5).\n";
constexpr const char* kTmpfiles = "/etc/tmpfiles.d";
constexpr const char* kBootFile = "/etc/tmpfiles.d/berth.conf";
constexpr std::string_view kDeviceLine = "f /run/berth/devices/";
// In one line, since tmpfiles.d writes one.
constexpr std::string_view kOrderLine = "berth-order 1 expect=runs";
constexpr mode_t kOrderMode = 0644;
constexpr std::size_t kLongestOrder = 200;
constexpr std::size_t kNamedWaiting = 8;

bool is_roots(const struct stat& status, mode_t mode) {
  return status.st_uid == 0 && status.st_gid == 0 && (status.st_mode & kAllModeBits) == mode;
}

Result<void> give_to_root(int file, mode_t mode) {
  if (::fchown(file, 0, 0) != 0 || ::fchmod(file, mode) != 0) return sys::fail_errno("making it root's");
  return {};
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
    if (is_roots(status, kDirectoryMode)) continue;
    if (const auto given = give_to_root(opened->get(), kDirectoryMode); !given)
      return std::unexpected(context(given.error(), name));
    mended.push_back(name);
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
    for (const std::string& uuid : uuids) devices_.insert(device_file_name(uuid));
    read_boot_lines();
    BERTH_DO(device_files());
    BERTH_DO(order(force));
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

  // Users write into the folder. So the names come from the driver, and from what root has written
  // before: what a user has put there changes nothing but the file of that very device.
  Result<void> device_files() {
    std::size_t made = 0;
    for (const std::string& name : devices_) {
      BERTH_LET(const bool is_new, make_device_file(name));
      made += is_new ? 1 : 0;
    }
    if (made > 0) site_.done.push_back(fmt::format("made {} device file{}", made, made == 1 ? "" : "s"));
    for (const std::string& name : devices_) BERTH_DO(mend_device_file(name));
    return {};
  }

  // False: it is there.
  Result<bool> make_device_file(const std::string& name) {
    const int devices = directory_.devices.get();
    struct stat status{};
    const bool is_there = ::fstatat(devices, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && S_ISREG(status.st_mode)) return false;
    // Nobody can have a lease by what is no file, and nobody gets one before it is gone.
    if (is_there && ::unlinkat(devices, name.c_str(), S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0) != 0) {
      const auto failed = sys::fail_errno("removing it");
      site_.trouble.push_back(
          fmt::format("{}/devices/{} is not a device file, and stops each lease of the "
                      "device: {}; remove it, and call berth init again",
                      path_, name, failed.error().message));
      return false;
    }
    BERTH_LET(const auto file, sys::make_unnamed(devices, kFileMode));
    return sys::give_name(file.get(), devices, name);
  }

  Result<void> mend_device_file(const std::string& name) {
    const auto file = sys::open_prepared(directory_.devices.get(), name, O_RDWR);
    struct stat status{};
    if (!file) site_.trouble.push_back(fmt::format("{}/devices/{}", path_, file.error().message));
    if (!file || !*file || ::fstat(file->get(), &status) != 0 || is_roots(status, kFileMode)) return {};
    // The change would open what has a second name elsewhere to all users too.
    if (status.st_nlink != 1) return replace_device_file(*file, name);
    // Somebody may have linked another user's file here, and this may be its last name by now.
    if (status.st_size != 0 && ::ftruncate(file->get(), 0) != 0) return sys::fail_errno("emptying " + name);
    if (const auto given = give_to_root(file->get(), kFileMode); !given)
      return std::unexpected(context(given.error(), name));
    site_.done.push_back(fmt::format("{}/devices/{} is root's now", path_, name));
    return {};
  }

  // With the lock of the device, so that it is taken from no lease.
  Result<void> replace_device_file(const sys::Descriptor& file, const std::string& name) {
    BERTH_LET(const bool is_free, sys::try_flock(file.get(), sys::LockMode::exclusive));
    if (!is_free) {
      site_.trouble.push_back(fmt::format(
          "{}/devices/{} has another name too, and is leased: call berth init again when the lease has ended",
          path_, name));
      return {};
    }
    if (::unlinkat(directory_.devices.get(), name.c_str(), 0) != 0)
      return sys::fail_errno("removing " + name);
    BERTH_DO(make_device_file(name));
    site_.done.push_back(fmt::format("{}/devices/{} had another name too, and is made anew", path_, name));
    return {};
  }

  // Requests that wait keep the order in which they came, and nobody passes them. So the order
  // changes when nobody waits; an admin may say otherwise, since somebody always waits somewhere.
  Result<void> order(bool force) {
    const int directory = directory_.root.get();
    const MachineOrder present = order_of_machine(path_);
    has_order_ = present.expect.has_value();
    if (has_order_) return {};
    BERTH_LET(const auto scan, scan_directory(directory_));
    std::set<std::string> waiting;
    for (const Ticket& ticket : scan.ledger.tickets)
      if (ticket.phase == TicketPhase::waiting) waiting.insert(sys::user_name(ticket.uid));
    if (!waiting.empty() && !force) {
      site_.trouble.push_back(fmt::format(
          "requests wait (of {}), so the order of the queue stays as it is: first come, first served. Call "
          "berth init again when nobody waits, or with --force: then short requests wait less",
          fmt::join(waiting | std::views::take(kNamedWaiting), ", ")));
      return {};
    }
    if (!present.fault.empty() && ::unlinkat(directory, kMachineOrderFile, 0) != 0) {
      site_.trouble.push_back(fmt::format(
          "{}; remove it, and call berth init again: until then, the order is first come, first served",
          present.fault));
      return {};
    }
    BERTH_LET(const auto file, sys::make_unnamed(directory, kOrderMode));
    BERTH_DO(sys::write_start(file.get(), fmt::format("{}\n", kOrderLine)));
    BERTH_LET(has_order_, sys::give_name(file.get(), directory, kMachineOrderFile));
    site_.sets_order = has_order_;
    // Another `berth init` may have been faster.
    if (!has_order_) has_order_ = order_of_machine(path_).expect.has_value();
    return {};
  }

  // A device that the driver does not tell now may come back, so what root has written stays.
  void read_boot_lines() {
    there_ = sys::read_whole(root_ + kBootFile);
    if (!there_ || !there_->starts_with(kHeader)) return;
    for (const auto part : std::views::split(*there_, '\n')) {
      std::string_view line(part.begin(), part.end());
      if (!line.starts_with(kDeviceLine)) continue;
      line.remove_prefix(kDeviceLine.size());
      const std::string_view name = line.substr(0, line.find(' '));
      if (is_device_file_name(name)) devices_.emplace(name);
    }
  }

  std::string boot_text() const {
    std::string text(kHeader);
    for (const char* part : {"", "/devices", "/queue", "/leases", "/inside", "/outcomes"})
      text += fmt::format("d {}{} 1777 root root -\n", kSiteDirectory, part);
    for (const std::string& name : devices_)
      text += fmt::format("{}{} 1666 root root -\n", kDeviceLine, name);
    if (has_order_)
      text += fmt::format("f {}/{} {:04o} root root - {}\n", kSiteDirectory, kMachineOrderFile, kOrderMode,
                          kOrderLine);
    return text + more_boot_lines_;
  }

  // /run is empty after a boot; without this whoever comes first would make the directory, or use
  // another.
  Result<void> boot_lines() {
    const std::string path = root_ + kBootFile;
    if (there_ && *there_ == boot_text()) return {};
    if (there_ && !there_->starts_with(kHeader)) {
      site_.trouble.push_back(fmt::format("{} was not written by berth init and is left as it is", path));
      return {};
    }
    for (const char* folder : {"/etc", kTmpfiles}) BERTH_DO(make_if_missing(root_ + folder));
    BERTH_LET(const auto alone, sys::lock_for_change(path));
    read_boot_lines();  // another `berth init` may have written meanwhile
    BERTH_DO(sys::replace_file(path, boot_text(), 0644));
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
  Result<std::string> there_;      // the text of kBootFile, before we write it
  std::set<std::string> devices_;  // the names of their files
  bool has_order_ = false;
  SiteDirectory site_;
};

}  // namespace

MachineOrder order_of_machine(const std::string& lease_directory) {
  if (lease_directory.empty()) return {};
  const std::string path = lease_directory + "/" + kMachineOrderFile;
  const auto file = sys::open_word_of_owner(AT_FDCWD, path, O_RDONLY);
  if (!file) return {.fault = file.error().message};
  if (!*file) return {};
  struct stat status{};
  // Its name would ask the directory service, and each start comes here.
  if (::fstat(file->get(), &status) != 0 || status.st_uid != 0)
    return {.fault = fmt::format("{} belongs to uid {} and not to root", path, status.st_uid)};
  const auto text = sys::read_start(file->get(), kLongestOrder);
  if (!text) return {.fault = fmt::format("{}: {}", path, text.error().message)};
  const std::string_view line = std::string_view(*text).substr(0, text->find('\n'));
  if (line != kOrderLine) return {.fault = fmt::format("{} says what this Berth does not know", path)};
  return {.expect = Expect::runs};
}

void apply_order_of_machine(SitePolicy& policy, const std::string& lease_directory) {
  if (!policy.says_expect)
    policy.queue.expect = order_of_machine(lease_directory).expect.value_or(Expect::none);
}

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
