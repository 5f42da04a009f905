#include "berth/sys/detached_thread.h"

#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "berth/sys/signals_blocked.h"

namespace berth::sys {

void begin_detached(std::function<void()> work) {
  const SignalsBlocked blocked;
  std::thread(std::move(work)).detach();
}

void close_detached(Descriptor descriptor) {
  const auto closed = std::make_shared<Descriptor>(std::move(descriptor));
  try {
    begin_detached([closed] { closed->close(); });
  } catch (const std::system_error&) {
    closed->close();
  }
}

}  // namespace berth::sys
