#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

/// The position of a job among those of its user with the same request. Positions are compared as
/// texts.
std::string position_of(std::uint64_t number, std::string_view moved_to);
/// A position before `next` and behind `before`; "": behind or before none. REQUIRES: before <
/// next.
std::string position_between(std::string_view before, std::string_view next);

}  // namespace berth
