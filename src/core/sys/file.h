#pragma once

#include <sys/stat.h>

#include <compare>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/descriptor.h"

namespace berth::sys {

/// Identifies a file as long as it exists, whatever its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};
FileIdentity identity_of(const struct stat& status);
/// The identity of the file that `name` in `directory` names now, without following links. nullopt:
/// there is none, or we cannot know.
std::optional<FileIdentity> identity_of(int directory, const std::string& name);

/// Opens a regular file that another user may have prepared: never blocks (FIFO, file lease), never
/// follows a link, never creates, never becomes a terminal's owner. An empty Descriptor: there is
/// no such file. Error: it is not a regular file, or cannot be opened; the message says which.
Result<Descriptor> open_prepared(int directory, const std::string& name, int access_mode);

/// Whether what the file says is said by its owner: it is a regular file, and nobody else may write
/// to it. Whoever may write to a file of another user may also give it a second name, in any folder
/// in which he may make files.
bool is_word_of_owner(const struct stat& status);
/// Opens, like open_prepared, a file that is the word of its owner. Error: also if it is not.
Result<Descriptor> open_word_of_owner(int directory, const std::string& name, int access_mode);

/// Opens a directory, last link not followed. An empty Descriptor: there is none.
Result<Descriptor> open_directory(int directory, const std::string& name);

/// The first `most_bytes` + 1 bytes of a file, so that the caller sees if the text is longer than
/// `most_bytes`.
Result<std::string> read_start(int file, std::size_t most_bytes);

/// The whole text of a file in /proc or /sys, or its start where it is longer than `most_bytes`.
Result<std::string> read_whole(const std::string& path,
                               std::size_t most_bytes = std::numeric_limits<std::size_t>::max());

/// The text of a file that an admin named. Whatever kind of file it is, opening it neither blocks
/// nor makes it our terminal. Error: it cannot be read, or is longer than this; the message begins
/// with `doing`.
Result<std::string> read_named(const std::string& path, unsigned most_mebibytes, std::string_view doing);

/// Puts `text` at the start of the file in one write. Error: it did not fit, or not all was
/// written.
Result<void> write_start(int file, std::string_view text);

/// Puts a file with this text and mode in the place of `path`. A reader meets the whole of it, or
/// what was there before. Nobody else may write into the folder. Whoever writes what it has read
/// there has `lock_for_change` (lock.h) from before the reading. Error: `failure`, with the path.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode);

/// Makes a file with this mode, whatever the umask, that has no name yet. It vanishes unless it
/// gets a name.
Result<Descriptor> make_unnamed(int directory, mode_t mode);

/// Gives an unnamed file its name. False: the name is taken.
Result<bool> give_name(int file, int directory, const std::string& name);

/// The names in a directory, without "." and "..", in no order. `kind` is DT_REG … as the kernel
/// tells.
struct DirectoryEntry {
  std::string name;
  unsigned char kind = 0;
  ino_t inode = 0;
};
Result<std::vector<DirectoryEntry>> list_directory(int directory);

/// The name of the user, or "uid N" if the system knows no name. May ask a directory service, which
/// can take seconds.
std::string user_name(uid_t uid);

/// The name that the kernel has for this machine; "localhost" if it has none.
std::string host_name();

/// The names of the groups of this process, without groups that the system does not know. May take
/// long, as user_name.
std::vector<std::string> group_names();
/// The names of the groups that the system has for this user. May take long, as user_name.
std::vector<std::string> group_names_of(uid_t uid);

/// Whether the system knows a user, or a group, of this name. True if it cannot say. May take long,
/// as user_name.
bool is_user(const std::string& name);
bool is_group(const std::string& name);

}  // namespace berth::sys
