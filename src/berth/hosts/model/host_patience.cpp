#include "berth/hosts/model/host_patience.h"

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/base/version.h"

namespace berth {

Result<void> check_version(std::string_view of_host) {
  if (of_host == version()) return {};
  return fail(ErrorCode::failure,
              "its Berth is version {}, and this one is {}. Install the same version on both",
              printable(of_host), version());
}

std::chrono::seconds patience_with(bool has_greeted) {
  return has_greeted ? kPatienceForAnswer : kPatienceForHello;
}

Error why_silent(std::string_view host, bool has_greeted) {
  const auto seconds = patience_with(has_greeted).count();
  if (has_greeted)
    return {
        ErrorCode::failure,
        fmt::format("its Berth has not answered for {} s. Look there: ssh {} berth doctor", seconds, host)};
  return {ErrorCode::failure, fmt::format("ssh has had no answer for {} s. Try: ssh {} true", seconds, host)};
}

}  // namespace berth
