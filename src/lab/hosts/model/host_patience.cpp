#include "berth/hosts/model/host_patience.h"

#include <fmt/format.h>

namespace berth {

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
