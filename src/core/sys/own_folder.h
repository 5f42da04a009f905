#pragma once

#include <optional>
#include <string>

#include "berth/base/error.h"

// Folders in which a user keeps what no other user can replace.
namespace berth::sys {

/// Whether `path` is a folder that is there. Error: `failure` if another user could put something
/// else in its place, or in the place of a folder or link on the way to it, with which one and why.
/// Folders that are not there yet are no error.
Result<bool> is_safe_from_others(const std::string& path);

/// Makes the folder and those on the way to it, for this user alone, where they are missing. Error:
/// `failure`, at the first that cannot be made.
Result<void> make_folders(const std::string& path);

/// A folder of this user in `shared`, in which everybody may make folders: `shared`/`name`, or, if
/// somebody else was first to take that name, one whose name nobody could know before, which is
/// made now if it is not there. Whatever others make and remove there later, the answer stays the
/// same.
Result<std::string> own_folder_in(const std::string& shared, const std::string& name);

/// The folder for what programs of this user remember: $XDG_STATE_HOME, else ~/.local/state.
/// nullopt: this user has no home.
std::optional<std::string> state_folder();

/// What names this machine among those that share a home: "gpu1-0a1b2c3d", by its name and its
/// machine-id; the name alone if it has no machine-id.
std::string machine_word();

}  // namespace berth::sys
