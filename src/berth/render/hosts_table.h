#pragma once

#include <string>

#include "berth/core/host.h"
#include "berth/render/text.h"

namespace berth::render {

/// What is free, by model; a line a host; a line a user. No more than style.width columns.
std::string hosts_table(const Hosts& hosts, const Style& style);

}  // namespace berth::render
