#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "berth/history/history.h"
#include "berth/http/answer.h"
#include "berth/net/listener.h"
#include "berth/usage/usage.h"

namespace berth::serve {

/// What is asked of the history: of this machine, and by its own name, as a hub asks. `history`
/// must outlive them.
http::ByPath<http::Service> history_services(history::History& history, const std::string& hostname);

/// The jobs that the user who runs this server has submitted, and what they print. Only this user
/// can read them, so they are told only if the user wants that. Files are read in a thread of their
/// own: there may be ten thousand jobs, and a home that hangs.
class JobServices {
 public:
  /// Also while it serves, from any thread.
  void tell(bool told) { told_ = told; }

  /// This must outlive them.
  http::ByPath<http::Service> services();

 private:
  http::Page jobs();
  static http::Page log(const http::Parameters& parameters);

  std::atomic<bool> told_ = false;
  asio::thread_pool thread_{1};
  // Of the thread alone: however many pages are open, the files are read once a moment.
  std::optional<http::Page> kept_;
  std::chrono::steady_clock::time_point kept_until_;
};

/// What the history knows of the last hours, asked for again and again. A look never waits for the
/// disk: it gets what was told last.
class PastOfTimeline : public std::enable_shared_from_this<PastOfTimeline> {
 public:
  /// Asks, if the last answer is old.
  void renew(history::History& history, std::int64_t now_s);
  /// null: nothing is known, or no history is kept.
  std::shared_ptr<const RecordedLeases> told() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const RecordedLeases> told_;
  std::int64_t asked_s_ = 0;  // of the thread that looks alone
};

}  // namespace berth::serve
