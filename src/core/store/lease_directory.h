#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/file.h"

namespace berth::store {

/// Why this directory and no other.
enum class DirectoryOrigin {
  environment,  ///< $BERTH_DIR
  site,         ///< /run/berth, which an administrator made
  fallback,     ///< /tmp/berth
  lease,        ///< inside a lease
};
struct DirectoryChoice {
  std::string path;
  DirectoryOrigin origin = DirectoryOrigin::fallback;
};

inline constexpr const char* kSiteDirectory = "/run/berth";
inline constexpr const char* kFallbackDirectory = "/tmp/berth";

/// The folder of a lease directory in which each user has one small file
/// (src/core/store/outcome_files.h).
inline constexpr const char* kOutcomesFolder = "outcomes";

/// $BERTH_DIR, else /run/berth if it exists, else /tmp/berth.
DirectoryChoice choose_lease_directory();

/// A lease directory that was opened and found fit for use. We trust its owner, or `notes` name the
/// owner; users cannot remove each other's tickets; its locks are the same for all.
struct LeaseDirectory {
  DirectoryChoice choice;
  sys::Descriptor root;
  sys::Descriptor devices;
  sys::Descriptor queue;
  sys::Descriptor leases;
  sys::Descriptor inside;          ///< has a lease directory for each lease inside which a request was made
  std::vector<std::string> notes;  ///< "warning: user alice owns …"

  /// Opens the directory. nullopt: it does not exist, or parts of it are missing, so nobody can
  /// have a lease in it. Changes nothing. Error: why it is not fit for use.
  static Result<std::optional<LeaseDirectory>> open(const DirectoryChoice& choice);
  /// The same, but makes what is missing. Error: also if it cannot be made, or is full.
  static Result<LeaseDirectory> make(const DirectoryChoice& choice);

  /// Whether the path still leads to the directory that was opened.
  bool is_current() const;
};

/// The name of the file system, if a flock on it is not the same lock for all machines, or if a
/// file server can forget it. nullopt: its locks can be trusted. `type`: statfs::f_type.
std::optional<std::string> untrusted_file_system(std::int64_t type);

/// The user with the most bytes of files in a directory, for the message that it is full: "alice
/// (312 files)".
std::string biggest_owner(const LeaseDirectory& directory);

}  // namespace berth::store
