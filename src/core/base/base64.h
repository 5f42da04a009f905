#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth {

/// RFC 4648, with padding.
std::string in_base64(std::string_view text);
/// nullopt: it is not base64. Bits that belong to no byte may be anything.
std::optional<std::string> out_of_base64(std::string_view text);

}  // namespace berth
