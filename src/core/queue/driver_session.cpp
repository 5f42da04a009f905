#include "berth/queue/driver_session.h"

namespace berth::acquisition {
namespace {

// Nobody replaces a driver and starts a job with it within so short a time. Where short jobs follow
// each other, a turn comes sooner, and a program that loads the driver takes longer than all else.
constexpr std::chrono::milliseconds kSessionLasts{1000};

}  // namespace

bool loads_anew(const DriverSession& session) {
  return std::holds_alternative<ToLoadAnew>(session) || std::holds_alternative<Failing>(session);
}

bool is_young(const DriverSession& session, std::chrono::milliseconds now) {
  const auto* loaded = std::get_if<Loaded>(&session);
  return loaded != nullptr && now - loaded->since < kSessionLasts;
}

DriverSession before_grant(const DriverSession& session, std::chrono::milliseconds now) {
  const bool is_loaded =
      std::holds_alternative<Loaded>(session) || std::holds_alternative<LoadedLongAgo>(session);
  return is_loaded && !is_young(session, now) ? ToLoadAnew{} : session;
}

DriverSession after_answer(const DriverSession& session, std::chrono::milliseconds now) {
  if (std::holds_alternative<LoadedLongAgo>(session)) return session;
  if (!std::holds_alternative<Loaded>(session)) return Loaded{now};
  return is_young(session, now) ? session : LoadedLongAgo{};
}

DriverSession after_failure(const DriverSession& session, std::chrono::milliseconds now) {
  return std::holds_alternative<Failing>(session) ? session : Failing{now};
}

}  // namespace berth::acquisition
