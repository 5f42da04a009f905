// Any user may put any file into the folder. A file counts for its owner, whatever its name says.
// Its name begins with the number of its owner, so that files without such a name need not be
// opened.

#include "berth/store/outcome_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/verdict/ledger.h"

namespace berth::store {
namespace {

constexpr mode_t kOutcomeFileMode = 0644;
// More users than this do not share a machine: then somebody fills the folder.
constexpr std::size_t kMostEntries = 512;
// Of so many names that begin with the number of this user, its own is found. Others make them to
// hide that one.
constexpr std::size_t kMostNames = 1 << 14;
// The file may be replaced while another process of the same user adds a line: so often this is
// tried again.
constexpr int kNotings = 3;

struct OutcomeFile {
  std::string name;
  sys::Descriptor file;
  std::uint32_t uid = 0;
};

// The owner of the folder could replace any file in it.
sys::Descriptor open_folder(const LeaseDirectory& directory) {
  auto folder = sys::open_directory(directory.root.get(), kOutcomesFolder);
  struct stat status{};
  if (!folder || !*folder || ::fstat(folder->get(), &status) != 0) return {};
  const bool is_ours = status.st_uid == 0 || status.st_uid == ::geteuid();
  const bool is_safe = (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (status.st_mode & S_ISVTX) != 0;
  return is_ours && is_safe ? std::move(*folder) : sys::Descriptor();
}

// "1001", or "1001-" and a word that nobody could know before.
std::optional<std::uint32_t> named_uid(std::string_view name) {
  return number_from_text<std::uint32_t>(name.substr(0, name.find('-')));
}

std::optional<OutcomeFile> open_outcomes(const sys::Descriptor& folder, const std::string& name, int access) {
  const auto uid = named_uid(name);
  if (!uid) return std::nullopt;
  auto file = sys::open_word_of_owner(folder.get(), name, access);
  struct stat status{};
  if (!file || !*file || ::fstat(file->get(), &status) != 0 || status.st_uid != *uid) return std::nullopt;
  return OutcomeFile{name, std::move(*file), *uid};
}

// nullopt: there are too many.
std::optional<std::vector<std::string>> names_in(const sys::Descriptor& folder) {
  sys::Descriptor own(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return std::nullopt;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(own.get()), &::closedir);
  if (!entries) return std::nullopt;
  own.release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (names.size() == kMostEntries) return std::nullopt;
    if (named_uid(entry->d_name)) names.emplace_back(entry->d_name);
  }
  // Of each user a single file counts: the same for all readers.
  std::ranges::sort(names);
  return names;
}

bool is_own(const sys::Descriptor& folder, const std::string& name) {
  struct stat status{};
  return ::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         status.st_uid == ::geteuid() && sys::is_word_of_owner(status);
}

// The names that begin with the number of this user, in order.
Result<std::vector<std::string>> names_of_own(const sys::Descriptor& folder) {
  BERTH_LET(const auto entries, sys::list_directory(folder.get()));
  std::vector<std::string> names;
  for (const sys::DirectoryEntry& entry : entries) {
    if (named_uid(entry.name) == ::geteuid()) names.push_back(entry.name);
  }
  if (names.size() > kMostNames) return fail(ErrorCode::failure, "somebody hides the file of this user");
  std::ranges::sort(names);
  return names;
}

// nullopt: this user has no file. Error: it may have one, and another one would be one too many.
Result<std::optional<OutcomeFile>> open_own(const sys::Descriptor& folder, int access) {
  if (auto own = open_outcomes(folder, std::to_string(::geteuid()), access)) return own;
  BERTH_LET(const auto names, names_of_own(folder));
  const auto own = std::ranges::find_if(names, [&](const std::string& name) { return is_own(folder, name); });
  if (own == names.end()) return std::nullopt;
  auto opened = open_outcomes(folder, *own, access);
  if (!opened) return fail(ErrorCode::failure, "{} cannot be opened", *own);
  return opened;
}

const std::string& boot() {
  static const std::string text = sys::boot_id();
  return text;
}

void add_runs(std::vector<UserRuns>& users, const OutcomeFile& file) {
  if (std::ranges::find(users, file.uid, &UserRuns::uid) != users.end()) return;
  const auto text = sys::read_start(file.file.get(), kMostOutcomeBytes);
  if (!text || !may_blame(*text, file.uid == ::geteuid() ? 1 : kBadRuns)) return;
  users.push_back({file.uid, decode_outcomes(*text, boot())});
}

Result<sys::Descriptor> unnamed(const sys::Descriptor& folder, const std::string& text) {
  BERTH_LET(auto file, sys::make_unnamed(folder.get(), kOutcomeFileMode));
  BERTH_DO(sys::write_start(file.get(), text));
  return file;
}

// "1001-5e0c…"
Result<std::string> unknown_name() {
  BERTH_LET(const auto word, sys::random_word());
  return fmt::format("{}-{}", ::geteuid(), word);
}

Result<void> make(const sys::Descriptor& folder, const std::string& text) {
  BERTH_LET(const auto file, unnamed(folder, text));
  BERTH_LET(const bool named, sys::give_name(file.get(), folder.get(), std::to_string(::geteuid())));
  if (named) return {};
  // Somebody else has taken that name.
  BERTH_LET(const auto name, unknown_name());
  BERTH_DO(sys::give_name(file.get(), folder.get(), name));
  return {};
}

// A reader meets the whole of it or what was there before.
Result<void> replace(const sys::Descriptor& folder, const std::string& name, const std::string& text) {
  BERTH_LET(const auto file, unnamed(folder, text));
  BERTH_LET(const auto beside, unknown_name());
  BERTH_DO(sys::give_name(file.get(), folder.get(), beside));
  if (::renameat(folder.get(), beside.c_str(), folder.get(), name.c_str()) == 0) return {};
  auto failed = sys::fail_errno("replacing " + name);
  ::unlinkat(folder.get(), beside.c_str(), 0);
  return failed;
}

// False: the name leads to another file by now. nullopt: it cannot be written.
std::optional<bool> add_line(const sys::Descriptor& folder, const OutcomeFile& own, const std::string& line) {
  const auto done = ::write(own.file.get(), line.data(), line.size());
  struct stat status{};
  if (!std::cmp_equal(done, line.size()) || ::fstat(own.file.get(), &status) != 0) return std::nullopt;
  return sys::identity_of(folder.get(), own.name) == sys::identity_of(status);
}

}  // namespace

std::vector<UserRuns> read_outcomes(const LeaseDirectory& directory) {
  std::vector<UserRuns> users;
  const sys::Descriptor folder = open_folder(directory);
  if (!folder) return users;
  const auto names = names_in(folder);
  if (!names) {
    if (const auto own = open_own(folder, O_RDONLY); own && *own) add_runs(users, **own);
    return users;
  }
  for (const std::string& name : *names) {
    if (const auto file = open_outcomes(folder, name, O_RDONLY)) add_runs(users, *file);
  }
  return users;
}

bool note_outcome(const LeaseDirectory& directory, const PastRun& run) {
  const sys::Descriptor folder = open_folder(directory);
  if (!folder || boot().empty()) return false;
  const std::string line = encode_outcome(run);
  for (int attempt = 0; attempt < kNotings; ++attempt) {
    const auto found = open_own(folder, O_RDWR | O_APPEND);
    if (!found) return false;
    const std::optional<OutcomeFile>& own = *found;
    const auto text = own ? sys::read_start(own->file.get(), kMostOutcomeBytes) : std::string();
    if (!text) return false;
    // Behind a line that a full disk has cut off, another line would be lost.
    const bool is_whole = text->ends_with('\n');
    if (own && is_whole && is_of_boot(*text, boot()) && text->size() + line.size() <= kMostOutcomeBytes) {
      const auto added = add_line(folder, *own, line);
      if (!added || *added) return added.has_value();
      continue;
    }
    std::vector<PastRun> runs = decode_outcomes(*text, boot());
    runs.push_back(run);
    const std::string fresh = encode_outcomes(runs, boot());
    // A full disk, or one without files that have no name: then it is not remembered.
    return (own ? replace(folder, own->name, fresh) : make(folder, fresh)).has_value();
  }
  return false;
}

}  // namespace berth::store
