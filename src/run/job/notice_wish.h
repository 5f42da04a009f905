#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/words.h"

namespace berth {

/// The events that a user can be told of.
enum class NoticeEvent {
  start,
  end,    ///< with status 0
  fail,   ///< it ended otherwise, was cut off, or can never begin
  time,   ///< its time is over soon
  left,   ///< it has ended, and what it started still has its GPUs
  share,  ///< it uses more of a GPU than its share
};
constexpr auto words_of(NoticeEvent) {
  return std::to_array<std::string_view>({"start", "end", "fail", "time", "left", "share"});
}

/// The events that a user wants to be told of, and the targets.
struct NoticeWish {
  std::vector<std::string> targets;  ///< as jobs::notice_target_from_text reads them
  std::vector<std::string> events;   ///< as to_text gives them; none: all but the start

  bool wants(NoticeEvent event) const;
  bool operator==(const NoticeWish&) const = default;
};

/// Error: `usage`, if it says when and not whom to tell.
Result<void> check(const NoticeWish& wish);

}  // namespace berth
