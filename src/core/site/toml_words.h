#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace berth::site {

/// What is wrong in a line (from 1) that toml++ cannot parse. If a value lacks its quotes, this
/// says so: "2h: a time needs quotes: default_wait = "2h"". Else it is what toml++ says.
std::string words_of_bad_line(std::string_view text, std::size_t line, std::string_view said);

/// "unknown key 'wiating' in [limits], did you mean waiting?". `where`: the table, or "" for the
/// file itself. `list`: where all keys are listed, for one that is near none of many.
std::string unknown_key(std::string_view key, std::string_view where, std::span<const std::string_view> known,
                        std::string_view list = "docs/manual.md");

}  // namespace berth::site
