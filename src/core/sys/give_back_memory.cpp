#include "berth/sys/give_back_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace berth::sys {

void give_back_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
  if (::gettid() != ::getpid()) return;
  // The frames below are of calls that have returned; a page is left for the calls from here. Below
  // a first stack Linux keeps more than this free of other mappings, whatever its limit is. If a
  // part is not mapped, the call fails and has done the rest.
  constexpr std::uintptr_t kDeepest = 1 << 20;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t end = (here - page) & ~(page - 1);
  ::madvise(reinterpret_cast<void*>(end - kDeepest), kDeepest, MADV_DONTNEED);
}

}  // namespace berth::sys
