#include "berth/jobs/model/pause.h"

#include <algorithm>

namespace berth::runner {

void lengthen(Pause& pause, SteadyTime now, SteadyTime first, SteadyTime longest) {
  if (now < pause.until) return;
  pause.length = std::clamp(pause.length * 2, first, longest);
  pause.until = now + pause.length;
}

}  // namespace berth::runner
