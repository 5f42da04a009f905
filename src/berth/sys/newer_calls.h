#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "berth/sys/descriptor.h"

/// System calls by their numbers: the wheels run on a glibc that is older than its own functions for these.
/// Each fails as a system call does, with errno, also on a kernel that lacks it.
namespace berth::sys {

/// Whether all of it was filled. Never waits for the kernel to have gathered enough.
inline bool fill_with_random_bytes(void* bytes, std::size_t size) {
  constexpr unsigned kNonblock = 1;
  return ::syscall(SYS_getrandom, bytes, size, kNonblock) == static_cast<long>(size);
}

/// A file that has no name and lies in memory.
inline Descriptor memory_file(const char* called) {
  constexpr unsigned kCloseOnExec = 1;
  return Descriptor(static_cast<int>(::syscall(SYS_memfd_create, called, kCloseOnExec)));
}

/// False, with EEXIST, where the new name is taken.
inline bool rename_to_free_name(int from_folder, const char* from, int to_folder, const char* to) {
  constexpr unsigned kNoReplace = 1;
  return ::syscall(SYS_renameat2, from_folder, from, to_folder, to, kNoReplace) == 0;
}

}  // namespace berth::sys
