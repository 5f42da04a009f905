#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "berth/sys/descriptor.h"

/// System calls by their numbers, because the wheels run on a glibc that has no functions for them
/// yet. Each fails as a system call does, with errno, also if the kernel lacks it.
namespace berth::sys {

/// Fills the bytes at random; says whether all were filled. Never waits until the kernel has
/// gathered enough.
inline bool fill_with_random_bytes(void* bytes, std::size_t size) {
  constexpr unsigned kNonblock = 1;
  return ::syscall(SYS_getrandom, bytes, size, kNonblock) == static_cast<long>(size);
}

/// A file without a name, in memory.
inline Descriptor memory_file(const char* called) {
  constexpr unsigned kCloseOnExec = 1;
  return Descriptor(static_cast<int>(::syscall(SYS_memfd_create, called, kCloseOnExec)));
}

/// False, with EEXIST, if the new name is taken.
inline bool rename_to_free_name(int from_folder, const char* from, int to_folder, const char* to) {
  constexpr unsigned kNoReplace = 1;
  return ::syscall(SYS_renameat2, from_folder, from, to_folder, to, kNoReplace) == 0;
}

}  // namespace berth::sys
