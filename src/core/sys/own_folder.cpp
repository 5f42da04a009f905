#include "berth/sys/own_folder.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <ranges>
#include <string_view>
#include <vector>

#include "berth/base/text.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::sys {
namespace {

// As of the kernel.
constexpr int kMostLinks = 40;
constexpr mode_t kPermissions = 07777;
constexpr std::size_t kMachineDigits = 8;

/// The parts of a path that are still to be walked, the next one last.
using Parts = std::vector<std::string>;

void put_before(Parts& parts, std::string_view path) {
  Parts more;
  for (const auto part : std::views::split(path, '/')) {
    if (const std::string_view name(part.begin(), part.end()); !name.empty() && name != ".")
      more.emplace_back(name);
  }
  parts.insert(parts.end(), more.rbegin(), more.rend());
}

// Many systems give each user such a group, and let it write.
bool is_group_of_this_user_alone(gid_t id) {
  std::array<char, 1 << 14> room{};
  passwd user{};
  passwd* known = nullptr;
  if (::getpwuid_r(::geteuid(), &user, room.data(), room.size(), &known) != 0 || known == nullptr)
    return false;
  std::vector<char> more(std::size_t{1} << 16U);
  group entry{};
  group* found = nullptr;
  if (::getgrgid_r(id, &entry, more.data(), more.size(), &found) != 0 || found == nullptr) return false;
  if (known->pw_gid != id || std::string_view(found->gr_name) != known->pw_name) return false;
  for (char** member = found->gr_mem; *member != nullptr; ++member) {
    if (std::string_view(*member) != known->pw_name) return false;
  }
  return true;
}

std::unexpected<Error> unsafe(const std::string& path, const std::string& what) {
  return fail(ErrorCode::failure,
              "{}, and could put something else in the place of {}: set XDG_STATE_HOME to a folder "
              "that only you may change",
              what, path);
}

/// Walks a path as the kernel does, and asks at each step who else could change it.
class Walk {
 public:
  explicit Walk(const std::string& path) : path_(path) { put_before(parts_, path); }

  Result<bool> go() {
    struct stat root{};
    if (::stat("/", &root) != 0) return fail_errno("examining /");
    // Where other users are those of another namespace, root has no number of its own.
    root_ = root.st_uid;
    while (!parts_.empty()) {
      const std::string part = std::move(parts_.back());
      parts_.pop_back();
      if (part == "..") {
        at_.erase(std::min(at_.rfind('/'), at_.size()));
        is_closed_ = false;
        continue;
      }
      BERTH_LET(const bool is_there, enter(at_ + "/" + part));
      if (!is_there) return false;
    }
    return true;
  }

 private:
  Result<bool> enter(const std::string& next) {
    struct stat status{};
    if (::lstat(next.c_str(), &status) != 0) {
      if (errno == ENOENT) return false;
      return fail_errno("examining " + next);
    }
    if (status.st_uid != ::geteuid() && status.st_uid != 0 && status.st_uid != root_)
      return unsafe(path_,
                    fmt::format("{} belongs to {}, who is another user", next, user_name(status.st_uid)));
    if (S_ISLNK(status.st_mode)) return follow(next);
    if (!S_ISDIR(status.st_mode)) return fail(ErrorCode::failure, next + " is not a folder");
    if (!is_closed_ && others_may_change(status))
      return unsafe(path_,
                    fmt::format("others may write in {} (mode {:o})", next, status.st_mode & kPermissions));
    // In a folder that nobody else can enter, permissions below do not matter.
    const bool is_mine = status.st_uid == ::geteuid();
    is_closed_ = is_closed_ || (is_mine && (status.st_mode & (S_IXGRP | S_IXOTH)) == 0);
    at_ = next;
    return true;
  }

  static bool others_may_change(const struct stat& status) {
    if ((status.st_mode & S_ISVTX) != 0) return false;
    if ((status.st_mode & S_IWOTH) != 0) return true;
    return (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0 &&
           !is_group_of_this_user_alone(status.st_gid);
  }

  Result<bool> follow(const std::string& link) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
    if (length < 0) return fail_errno("reading the link " + link);
    if (++links_ > kMostLinks) return fail(ErrorCode::failure, link + ": too many links");
    const std::string_view text(target.data(), static_cast<std::size_t>(length));
    if (text.starts_with('/')) {
      at_.clear();
      is_closed_ = false;
    }
    put_before(parts_, text);
    return true;
  }

  const std::string& path_;
  Parts parts_;
  std::string at_;          ///< where the walk is; "": the root
  bool is_closed_ = false;  ///< nobody else can come to where it is
  uid_t root_ = 0;
  int links_ = 0;
};

bool is_mine(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  // A link belongs to its user, who may say where it leads.
  return S_ISLNK(status.st_mode) || S_ISDIR(status.st_mode);
}

bool is_empty(const std::string& path) {
  const auto folder = open_directory(AT_FDCWD, path);
  const auto entries = folder && *folder ? list_directory(folder->get()) : std::unexpected(Error{});
  return !entries || entries->empty();
}

// nullopt: there is none. Of several, made by two processes at the same moment, the one in use.
Result<std::optional<std::string>> find_mine(const std::string& shared, const std::string& beginning) {
  BERTH_LET(const auto folder, open_directory(AT_FDCWD, shared));
  if (!folder) return std::nullopt;
  BERTH_LET(const auto entries, list_directory(folder.get()));
  std::vector<std::string> found;
  for (const DirectoryEntry& entry : entries) {
    std::string path = fmt::format("{}/{}", shared, entry.name);
    if (entry.name.starts_with(beginning) && is_mine(path)) found.push_back(std::move(path));
  }
  if (found.empty()) return std::nullopt;
  std::ranges::sort(found);
  const auto used = std::ranges::find_if_not(found, is_empty);
  return used == found.end() ? found.front() : *used;
}

}  // namespace

Result<bool> is_safe_from_others(const std::string& path) {
  return Walk(path).go();
}

Result<std::string> own_folder_in(const std::string& shared, const std::string& name) {
  const std::string plain = fmt::format("{}/{}", shared, name);
  if (is_mine(plain)) return plain;
  const std::string beginning = name + ".";
  BERTH_LET(auto found, find_mine(shared, beginning));
  if (found) return *std::move(found);
  struct stat status{};
  if (::lstat(plain.c_str(), &status) != 0) return plain;
  std::string made = fmt::format("{}/{}XXXXXX", shared, beginning);
  if (::mkdtemp(made.data()) == nullptr) return fail_errno("making a folder in " + shared);
  BERTH_LET(found, find_mine(shared, beginning));
  if (found && *found != made) ::rmdir(made.c_str());
  return found.value_or(made);
}

Result<void> make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    const int error = ::mkdir(part.c_str(), 0700) == 0 ? 0 : errno;
    // A folder that exists may lie where nothing can be made.
    if (error != 0 && error != EEXIST && ::access(part.c_str(), F_OK) != 0)
      return std::unexpected(system_error(error, "making " + part));
    if (end == std::string::npos) return {};
  }
}

std::optional<std::string> state_folder() {
  if (const std::string_view state = variable("XDG_STATE_HOME"); state.starts_with('/'))
    return std::string(state);
  if (const std::string_view home = variable("HOME"); home.starts_with('/'))
    return fmt::format("{}/.local/state", home);
  return std::nullopt;
}

std::string machine_word() {
  const auto id = read_whole("/etc/machine-id");
  if (!id || id->size() < kMachineDigits) return host_name();
  return fmt::format("{}-{}", host_name(), id->substr(0, kMachineDigits));
}

}  // namespace berth::sys
