#pragma once

#include <chrono>

#include "berth/queue/acquisition.h"

// How a request sleeps that has to wait: behind a rival or until a release, for how long, and what
// wakes it.
namespace berth::acquisition {

/// `left`: until its time is up, more than none.
Action fall_asleep(State& state, std::chrono::milliseconds now, std::chrono::milliseconds left);

// What the end of a sleep says of the next one.

void note_end_of_sleep(Quiet& quiet, Woken woken);
/// What was quiet no longer counts.
void end_quiet(Quiet& quiet);
/// Somebody has rung.
void note_ring(Listening& listening, std::chrono::milliseconds now, std::chrono::milliseconds longest_pause);

/// Only the lock of an original keeps a device from us. So no rival before us looks after that
/// device.
bool watches_original(const State& state, const Behind& me);

}  // namespace berth::acquisition
