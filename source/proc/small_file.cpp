#include "berth/source/proc/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "berth/sys/descriptor.h"

namespace berth::source {

std::optional<std::string> read_small_file(const std::string& path, std::size_t most) {
  const sys::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return std::nullopt;
  std::string text(most, '\0');
  const ssize_t length = read(file.get(), text.data(), text.size());
  if (length < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(length));
  return text;
}

}  // namespace berth::source
