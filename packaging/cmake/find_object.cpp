// A program that carries its own unwinder starts 0.13 ms sooner than one that loads libgcc_s.so.1 (measured:
// 0.63 against 0.76 ms, an empty C program 0.56), and needs one library less. But GCC 12's unwinder finds the
// tables of a frame by _dl_find_object, which glibc has only since 2.35, and Berth must run on 2.34. So here
// is that function over what every glibc has. Hidden: libraries loaded later keep the one of their libc.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>

namespace {

static_assert(DLFO_STRUCT_HAS_EH_DBASE == 0, "this machine's unwinder wants more than the table");

struct Search {
  std::uintptr_t address;
  dl_find_object* found;
};

// Non-zero ends the walk.
int visit(dl_phdr_info* object, std::size_t, void* data) {
  const Search& search = *static_cast<Search*>(data);
  const ElfW(Phdr)* table = nullptr;
  bool inside = false;
  for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_GNU_EH_FRAME) table = &segment;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search.address - begin >= segment.p_memsz) continue;
    inside = true;
    search.found->dlfo_map_start = reinterpret_cast<void*>(begin);
    search.found->dlfo_map_end = reinterpret_cast<void*>(begin + segment.p_memsz);
  }
  if (!inside || table == nullptr) return 0;
  search.found->dlfo_flags = 0;
  search.found->dlfo_link_map = nullptr;
  search.found->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + table->p_vaddr);
  return 1;
}

}  // namespace

/// 0 and where the object lies that holds `address`, or -1.
extern "C" [[gnu::visibility("hidden")]] int _dl_find_object(void* address, dl_find_object* found) noexcept {
  Search search{reinterpret_cast<std::uintptr_t>(address), found};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}
