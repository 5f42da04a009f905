#include "berth/sys/random_word.h"

#include <array>

#include <fmt/format.h>

#include "berth/sys/newer_calls.h"
#include "berth/sys/system_error.h"

namespace berth::sys {

Result<std::string> random_word() {
  std::array<unsigned char, 16> bytes{};
  if (!fill_with_random_bytes(bytes.data(), bytes.size()))
    return fail_errno("asking the kernel for a random number");
  std::string word;
  for (const unsigned char byte : bytes) word += fmt::format("{:02x}", byte);
  return word;
}

}  // namespace berth::sys
