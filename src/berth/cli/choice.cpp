#include "berth/cli/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/core/mask.h"

namespace berth::cli {

bool counts_by_index(const Choice& choice, const Snapshot& snapshot, bool uuids) {
  return !uuids && cuda_counts_as_the_driver(snapshot) &&
         std::ranges::all_of(choice.uuids,
                             [&](const std::string& uuid) { return find_device(snapshot, uuid) != nullptr; });
}

std::string visible_devices(const Choice& choice, const Snapshot& snapshot, bool uuids) {
  if (!counts_by_index(choice, snapshot, uuids)) return fmt::format("{}", fmt::join(choice.uuids, ","));
  std::string value;
  for (const std::string& uuid : choice.uuids) {
    value += fmt::format("{}{}", value.empty() ? "" : ",", find_device(snapshot, uuid)->index);
  }
  return value;
}

}  // namespace berth::cli
