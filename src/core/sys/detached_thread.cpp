#include "berth/sys/detached_thread.h"

#include <thread>
#include <utility>

#include "berth/sys/signals_blocked.h"

namespace berth::sys {

void begin_detached(std::function<void()> work) {
  const SignalsBlocked blocked;
  std::thread(std::move(work)).detach();
}

}  // namespace berth::sys
