#pragma once

#include <cstddef>

#include <rapidcheck.h>

#include "berth/queue/schedule.h"

namespace berth::test {

/// For what is true of each order of the queue, also of those that are added later.
inline QueueOrder any_order() {
  return order_rows()[*rc::gen::inRange<std::size_t>(0, order_rows().size())].order;
}

}  // namespace berth::test
