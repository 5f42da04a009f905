#include "berth/receipts/receipts_on_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/own_folder.h"
#include "berth/usage/receipt.h"

// A file a machine, because what two machines append to one file over a network may overwrite each
// other. On one machine an append is one write under the kernel's lock of the file.
namespace berth::receipts {
namespace {

constexpr std::size_t kMostBytes = 256UL << 10U;
// Machines that live for a day each, as containers do, would else fill the home with their files.
constexpr std::size_t kMostMachines = 64;
constexpr std::string_view kDraftMark = ".new-";
constexpr int kAttempts = 3;

bool is_this_users(const struct stat& status) {
  return status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Empty: it is not there, or not this user's alone.
sys::Descriptor open_record(const std::string& path) {
  auto folder = sys::open_directory(AT_FDCWD, path);
  struct stat status{};
  if (!folder || !*folder || ::fstat(folder->get(), &status) != 0 || !is_this_users(status)) return {};
  return std::move(*folder);
}

sys::Descriptor make_record(const std::string& path) {
  // Where sudo leaves HOME as it is, a user would say by a link where root makes folders.
  if (::geteuid() == 0 && !sys::is_safe_from_others(path)) return {};
  (void)sys::make_folders(path);  // whether it is there shows next
  return open_record(path);
}

sys::Descriptor open_file(const sys::Descriptor& folder, const std::string& name, int access) {
  auto file = sys::open_prepared(folder.get(), name, access);
  struct stat status{};
  if (!file || !*file || ::fstat(file->get(), &status) != 0 || !is_this_users(status)) return {};
  return std::move(*file);
}

/// The files of all machines, the one that was written last first.
std::vector<std::string> files_in(const sys::Descriptor& folder) {
  struct Named {
    timespec written;
    std::string name;
  };
  std::vector<Named> found;
  const auto entries = sys::list_directory(folder.get());
  for (const sys::DirectoryEntry& entry : entries ? *entries : std::vector<sys::DirectoryEntry>{}) {
    struct stat status{};
    if (entry.name.starts_with('.') ||
        ::fstatat(folder.get(), entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    found.push_back({status.st_mtim, entry.name});
  }
  std::ranges::sort(found, [](const Named& a, const Named& b) {
    return std::pair(a.written.tv_sec, a.written.tv_nsec) > std::pair(b.written.tv_sec, b.written.tv_nsec);
  });
  std::vector<std::string> names;
  for (Named& each : found) names.push_back(std::move(each.name));
  return names;
}

std::string recorded_text(const sys::Descriptor& folder, const std::string& name) {
  const sys::Descriptor file = open_file(folder, name, O_RDONLY);
  if (!file) return {};
  return sys::read_start(file.get(), kMostBytes).value_or("");
}

// A reader meets the whole of it or what was there before. A file without a name is not known on a
// network.
Result<void> replace(const sys::Descriptor& folder, const std::string& name, std::string_view text) {
  BERTH_LET(const auto word, sys::random_word());
  const std::string draft = fmt::format("{}{}", kDraftMark, word);
  const sys::Descriptor file(
      ::openat(folder.get(), draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return sys::fail_errno("making a file in the record of runs");
  auto done = sys::write_start(file.get(), text);
  if (done && ::renameat(folder.get(), draft.c_str(), folder.get(), name.c_str()) != 0)
    done = sys::fail_errno("naming a file in the record of runs");
  if (!done) ::unlinkat(folder.get(), draft.c_str(), 0);
  return done;
}

// If two processes write a file anew, each would lose what the other has added. If the lock cannot
// be had, as on some networks, the file is written all the same: it is a record, and no lease.
sys::Descriptor lock_for_writing_anew(const sys::Descriptor& folder) {
  constexpr int kTries = 100;
  constexpr std::chrono::milliseconds kBetween{10};
  auto own = sys::open_directory(folder.get(), ".");
  for (int attempt = 0; own && *own && attempt < kTries; ++attempt) {
    const auto locked = sys::try_flock(own->get(), sys::LockMode::exclusive);
    if (!locked || *locked) break;
    std::this_thread::sleep_for(kBetween);
  }
  return own ? std::move(*own) : sys::Descriptor();
}

void make_room_for_one_more(const sys::Descriptor& folder) {
  const std::vector<std::string> names = files_in(folder);
  for (std::size_t i = kMostMachines - 1; i < names.size(); ++i)
    ::unlinkat(folder.get(), names[i].c_str(), 0);
}

// False: the name leads to another file by now. nullopt: it cannot be written.
std::optional<bool> append(const sys::Descriptor& folder, const std::string& name, const std::string& line) {
  sys::Descriptor file = open_file(folder, name, O_RDWR | O_APPEND);
  if (!file) {
    make_room_for_one_more(folder);
    file = sys::Descriptor(::openat(folder.get(), name.c_str(),
                                    O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  }
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !is_this_users(status))
    return std::nullopt;
  if (static_cast<std::size_t>(status.st_size) + line.size() > kMostBytes) {
    const auto alone = lock_for_writing_anew(folder);
    if (sys::identity_of(folder.get(), name) != sys::identity_of(status)) return false;
    const auto text = sys::read_start(file.get(), static_cast<std::size_t>(status.st_size));
    if (!text || !replace(folder, name, fmt::format("{}{}", last_lines(*text, kMostBytes / 2), line)))
      return std::nullopt;
    return true;
  }
  if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) return std::nullopt;
  return sys::identity_of(folder.get(), name) == sys::identity_of(status);
}

}  // namespace

std::optional<std::string> receipt_folder() {
  const auto state = sys::state_folder();
  if (!state) return std::nullopt;
  return *state + "/berth/receipts";
}

bool note_receipt(const std::string& path, const Receipt& receipt) {
  sys::Descriptor folder = open_record(path);
  if (!folder) folder = make_record(path);
  if (!folder) return false;
  const std::string name = sys::machine_word();
  const std::string line = encode_receipt(receipt);
  // Somebody may put another file in its place: one that has grown too long, or what is left after
  // `forget`.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto done = append(folder, name, line);
    if (!done || *done) return done.has_value();
  }
  return false;
}

std::vector<Receipt> read_receipts(const std::string& path) {
  const sys::Descriptor folder = open_record(path);
  if (!folder) return {};
  std::vector<std::vector<Receipt>> of_machines;
  for (const std::string& name : files_in(folder)) {
    if (of_machines.size() == kMostMachines) break;
    of_machines.push_back(decode_receipts(recorded_text(folder, name)));
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(sys::wall_now());
  return merged(std::move(of_machines), now.count());
}

std::vector<Receipt> receipts_of_this_machine(const std::string& path) {
  const sys::Descriptor folder = open_record(path);
  if (!folder) return {};
  return decode_receipts(recorded_text(folder, sys::machine_word()));
}

Result<std::size_t> forget_receipts(const std::string& path, const std::string& program) {
  const sys::Descriptor folder = open_record(path);
  if (!folder) return 0;
  const auto alone = lock_for_writing_anew(folder);
  std::size_t forgotten = 0;
  for (const std::string& name : files_in(folder)) {
    const std::string text = recorded_text(folder, name);
    const std::size_t before = decode_receipts(text).size();
    if (program.empty()) {
      if (::unlinkat(folder.get(), name.c_str(), 0) != 0)
        return sys::fail_errno(fmt::format("removing {}/{}", path, name));
      forgotten += before;
      continue;
    }
    const std::string rest = without_program(text, program);
    const std::size_t after = decode_receipts(rest).size();
    if (after != before) BERTH_DO(replace(folder, name, rest));
    forgotten += before - after;
  }
  return forgotten;
}

namespace {

using namespace std::chrono_literals;

// A disk that works is faster by far. Without the record, a request counts as one of which nothing
// is known.
constexpr auto kPatienceWithHome = 1s;

/// `use` gets the receipts in a thread.
template <class Use>
auto begin_to_read(Use use) {
  using Told = std::invoke_result_t<Use, const std::vector<Receipt>&>;
  return sys::DetachedAnswer<Told>([use = std::move(use), folder = receipt_folder()] {
    return use(folder ? read_receipts(*folder) : std::vector<Receipt>());
  });
}

}  // namespace

std::function<std::function<std::vector<Moment>()>()> earlier_runs_of(const std::string& command) {
  return [command]() -> std::function<std::vector<Moment>()> {
    const auto told = std::make_shared<sys::DetachedAnswer<std::vector<Moment>>>(
        begin_to_read([command, uid = ::geteuid()](const std::vector<Receipt>& receipts) {
          return earlier_runs(receipts, uid, command);
        }));
    return [told] { return told->within(kPatienceWithHome); };
  };
}

SettledMemory settle_memory(Request request, const std::string& command) {
  if (!asks_memory_by_runs(request)) return {std::move(request)};
  auto told = begin_to_read([command, uid = ::geteuid()](const std::vector<Receipt>& receipts) {
    return memory_by_runs(receipts, uid, command);
  });
  const MemoryByRuns memory = told.within(kPatienceWithHome);
  return {with_memory(std::move(request), memory.bytes), in_words(memory)};
}

}  // namespace berth::receipts
