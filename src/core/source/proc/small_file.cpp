#include "berth/source/proc/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "berth/sys/descriptor.h"

namespace berth::source {

std::optional<std::string> read_small_file(const std::string& path, std::size_t most) {
  const sys::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return std::nullopt;
  std::string text;
  ssize_t length = -1;
  text.resize_and_overwrite(most, [&](char* bytes, std::size_t) {
    length = read(file.get(), bytes, most);
    return static_cast<std::size_t>(length > 0 ? length : 0);
  });
  return length < 0 ? std::nullopt : std::optional(std::move(text));
}

}  // namespace berth::source
