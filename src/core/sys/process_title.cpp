// Linux shows the memory in which it has put the arguments. The environment follows them. If the
// last byte of the arguments is no NUL, Linux takes the text for one that was written over both,
// and shows it up to the first NUL.
#include "berth/sys/process_title.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace berth::sys {

void show_as(std::string_view words) {
  constexpr std::ptrdiff_t kMost = 1 << 20;
  char* const begin = program_invocation_name;
  char* const end = environ != nullptr ? *environ : nullptr;
  if (end == nullptr || end <= begin || end - begin > kMost || end[-1] != '\0') return;
  char* room = end;
  for (char** each = environ; *each == room && room < begin + words.size() + 1; ++each) {
    room += std::strlen(room) + 1;
    *each = ::strdup(*each);
    if (*each == nullptr) return;
  }
  if (room < begin + words.size() + 1) return;
  std::fill(begin, end, '\0');
  std::ranges::copy(words, begin);
  begin[words.size()] = '\0';
  if (begin + words.size() < end) std::replace(begin, begin + words.size(), ' ', '\0');
}

}  // namespace berth::sys
