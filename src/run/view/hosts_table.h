#pragma once

#include <string>

#include "berth/machines/host.h"
#include "berth/view/text.h"

namespace berth::view {

/// What is free, by model; then a line for each host, and a line for each user. At most style.width
/// columns.
std::string hosts_table(const Hosts& hosts, const Style& style);

}  // namespace berth::view
