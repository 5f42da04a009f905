#include "berth/hosts/model/agent_words.h"

#include <fmt/format.h>

#include <charconv>

#include "berth/base/printable.h"

namespace berth::caller {

std::optional<What> said_by_agent(std::string_view word, const std::string& rest) {
  if (word == "open") return Opened{rest};
  if (word == "close") return Closed{rest};
  if (word == "limit") return Limited{printable(rest)};
  if (word == "yes") return MayStart{rest};
  if (word == "place") {
    std::size_t position = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), position);
    return Position{position};
  }
  if (word == "silent") return StoreIsSilent{printable(rest)};
  if (word == "heard") return StoreAnswers{};
  if (word == "no")
    return Dismissed{{ErrorCode::failure, fmt::format("the queue of the lab: {}", printable(rest))}};
  return std::nullopt;
}

}  // namespace berth::caller
