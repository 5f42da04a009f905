#include "berth/hosts/lab_queue_order.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/hosts/anywhere.h"
#include "berth/hosts/lab_agent_link.h"

namespace berth::hosts {
namespace {

/// "3 desk1:1234": its position, and where it was asked for.
std::optional<LabStanding> standing_from(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const auto position = number_from_text<std::size_t>(text.substr(0, space));
  if (!position) return std::nullopt;
  return LabStanding{text.substr(space + 1), *position};
}

/// Adds a part of the queue. Gives the position from which on the next part is to be asked for; 0:
/// this part was the last.
Result<std::size_t> add_part(LabOrder& order, const std::vector<AgentWords>& answer) {
  std::size_t next = 0;
  for (const AgentWords& words : answer) {
    const std::string& word = words.front();
    if (word == "silent")
      return fail(ErrorCode::failure,
                  fmt::format("the store of the lab does not answer: {}", printable(words.back())));
    if (word == "outside") order.outside = number_from_text<std::size_t>(words.back()).value_or(0);
    if (word == "more") next = number_from_text<std::size_t>(words.back()).value_or(0);
    if (word != "stands") continue;
    if (auto standing = standing_from(words.back())) order.standing.push_back(*std::move(standing));
  }
  return next;
}

}  // namespace

Result<LabOrder> order_of_lab() {
  BERTH_LET(const auto socket, lab_store_socket());
  LabOrder order;
  if (socket.empty()) return order;
  std::size_t from = 0;
  do {
    BERTH_LET(const auto answer, ask_agent(socket, fmt::format("line {}", from)));
    BERTH_LET(const auto next, add_part(order, answer));
    // Parts that do not go forward would never end.
    from = next > from ? next : 0;
  } while (from != 0);
  return order;
}

}  // namespace berth::hosts
