#include "berth/supervise/release_call.h"

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/sys/file.h"

namespace berth::supervise {

std::string in_words(const ReleaseCall& call) {
  return fmt::format("{}{}{}", sys::user_name(call.uid), call.because.empty() ? "" : ": ",
                     printable(call.because));
}

std::optional<std::string> who_released(const ReleaseCall& call, const std::optional<sys::Sender>& sender) {
  // If a holder has not obeyed an older call, that call is still in its ticket.
  if (!sender || call.pid == 0 || !std::cmp_equal(call.pid, sender->pid)) return std::nullopt;
  return in_words(call);
}

}  // namespace berth::supervise
