#include "berth/command/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/base/units.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/system_error.h"

namespace berth::command {

namespace {

Result<std::string> text_of(int file, std::size_t most) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = ::read(file, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return sys::fail_errno("reading");
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > most) return fail(ErrorCode::usage, "it is longer than {}", bytes_for_people(most));
  }
}

}  // namespace

Result<std::string> text_of_input(const std::string& name, std::size_t most) {
  const sys::Descriptor file(name == kInput ? ::dup(STDIN_FILENO)
                                            : ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  auto text = file ? text_of(file.get(), most) : Result<std::string>(sys::fail_errno("opening"));
  if (text) return text;
  return std::unexpected(context(text.error(), name == kInput ? "standard input" : printable(name)));
}

}  // namespace berth::command
