#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "berth/sys/detached_answer.h"
#include "berth/verdict/limits.h"

namespace berth::net {

/// Whose limits apply to a user: the name and the groups, as the name service says them. The
/// service may never answer, so each question has a thread of its own, one for each user at a time.
class Askers {
 public:
  /// What the service has said in the last minute. nullopt: it has not answered yet, or could not
  /// be asked.
  std::optional<Asker> find(std::uint32_t uid);

 private:
  struct Question {
    std::chrono::steady_clock::time_point asked_at{};
    sys::DetachedAnswer<std::optional<Asker>> coming{};
    std::optional<Asker> answer{};
  };

  std::map<std::uint32_t, Question> questions_;
};

}  // namespace berth::net
