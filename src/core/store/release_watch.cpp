#include "berth/store/release_watch.h"

#include <poll.h>
#include <sys/inotify.h>

#include <array>

#include <fmt/format.h>

namespace berth::store {

ReleaseWatch::ReleaseWatch() : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

bool ReleaseWatch::add(int directory, const std::string& name) {
  if (!inotify_) return false;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory, name);
  const int watch =
      ::inotify_add_watch(inotify_.get(), path.c_str(), IN_CLOSE_WRITE | IN_ATTRIB | IN_DONT_FOLLOW);
  // The kernel gives the same number for the same file, also under a later name.
  return watch >= 0 && watched_.insert(watch).second;
}

bool ReleaseWatch::wait(const std::vector<int>& exits, std::chrono::milliseconds tick) {
  std::vector<pollfd> ready{{inotify_.get(), POLLIN, 0}};
  for (const int exit : exits) ready.push_back({exit, POLLIN, 0});
  if (::poll(ready.data(), ready.size(), static_cast<int>(tick.count())) <= 0) return false;
  alignas(inotify_event) std::array<char, 4096> events{};
  ssize_t got = 0;
  while ((got = ::read(inotify_.get(), events.data(), events.size())) > 0) {
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      // A watch goes with its file; the number may come again for another.
      if ((event->mask & IN_IGNORED) != 0) watched_.erase(event->wd);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
    }
  }
  return true;
}

}  // namespace berth::store
