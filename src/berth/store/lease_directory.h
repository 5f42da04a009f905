#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/error.h"
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

/// $BERTH_DIR, else /run/berth if it exists, else /tmp/berth.
DirectoryChoice choose_lease_directory();

/// A lease directory that was opened and found fit for use: its owner can be trusted or is named, others'
/// tickets are safe in it, its locks mean the same to all.
struct LeaseDirectory {
  DirectoryChoice choice;
  sys::Descriptor root;
  sys::Descriptor devices;
  sys::Descriptor queue;
  sys::Descriptor leases;
  sys::Descriptor inside;          ///< a lease directory for each lease inside which something was asked for
  std::vector<std::string> notes;  ///< "warning: user alice owns …"

  /// nullopt: it does not exist, or not whole, so nobody can have a lease in it. Changes nothing. Error: it
  /// is not fit, and why.
  static Result<std::optional<LeaseDirectory>> open(const DirectoryChoice& choice);
  /// The same, with what is missing made. Error: also when it cannot be made, or is full.
  static Result<LeaseDirectory> make(const DirectoryChoice& choice);

  /// Whether the path still leads to the directory that was opened.
  bool is_current() const;
};

/// The name of a file system on which flock is not one lock for all who use it, or on which a file server can
/// forget it. nullopt: locks can be trusted. `type` is statfs::f_type.
std::optional<std::string> untrusted_file_system(std::int64_t type);

/// Who has the most bytes of tickets and other files in a directory, for the message that it is full: "alice
/// (312 files)".
std::string biggest_owner(const LeaseDirectory& directory);

}  // namespace berth::store
