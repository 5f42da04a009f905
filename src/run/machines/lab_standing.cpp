#include "berth/machines/lab_standing.h"

#include <fmt/format.h>

namespace berth {

unsigned lane_of(unsigned gpus, const QueueRules& rules) {
  return rules.backfill ? gpus : 0;
}

std::string origin_of(std::string_view machine, std::int64_t pid) {
  return fmt::format("{}:{}", machine, pid);
}

}  // namespace berth
