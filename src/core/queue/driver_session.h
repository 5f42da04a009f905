#pragma once

#include <chrono>
#include <variant>

// What a request that waits knows of the driver as it is loaded: the driver may be replaced
// meanwhile. A session that is older than an upgrade still works, but a command that starts now
// loads the new library.
namespace berth::acquisition {

/// It is not loaded: nobody has asked yet, or a sleep has ended the session.
struct NotLoaded {
  bool operator==(const NotLoaded&) const = default;
};
/// At the last answer, the session was young enough for a command to meet the same driver.
struct Loaded {
  std::chrono::milliseconds since;  ///< its first answer

  bool operator==(const Loaded&) const = default;
};
/// At the last answer, the session was so old that the driver may be another by now.
struct LoadedLongAgo {
  bool operator==(const LoadedLongAgo&) const = default;
};
/// A device could be granted by an old session, if a driver that is loaded anew agrees.
struct ToLoadAnew {
  bool operator==(const ToLoadAnew&) const = default;
};
/// The driver does not work for the request, or no device that it waits for does.
struct Failing {
  std::chrono::milliseconds since;

  bool operator==(const Failing&) const = default;
};
using DriverSession = std::variant<NotLoaded, Loaded, LoadedLongAgo, ToLoadAnew, Failing>;

// Times: since the request began.

/// Whether the next look loads the driver anew. While the driver fails, a session that was loaded
/// before may fail for ever: by an old library, for example.
bool loads_anew(const DriverSession& session);
/// Whether the session, if it is kept, is young enough for the next look.
bool is_young(const DriverSession& session, std::chrono::milliseconds now);

/// A lease may have ended, and the next look may grant its devices. If it would need a driver that
/// is loaded anew to do so, it asks this driver alone, and not the old one first.
DriverSession before_grant(const DriverSession& session, std::chrono::milliseconds now);
DriverSession after_answer(const DriverSession& session, std::chrono::milliseconds now);
DriverSession after_failure(const DriverSession& session, std::chrono::milliseconds now);

}  // namespace berth::acquisition
