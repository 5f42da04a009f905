#include "berth/device/host_facts.h"

#include "berth/base/fail.h"
#include "berth/base/printable.h"

namespace berth {

Result<void> check_label(std::string_view label) {
  constexpr std::size_t kLongest = 64;
  constexpr std::string_view kCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/+@";
  if (!label.empty() && label.size() <= kLongest && label.find_first_not_of(kCharacters) == label.npos)
    return {};
  return fail(ErrorCode::usage, "'{}' must be of 1 to {} letters, digits and . _ - : / + @",
              printable(label.substr(0, kLongest)), kLongest);
}

}  // namespace berth
