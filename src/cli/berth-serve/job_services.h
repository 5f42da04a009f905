#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "berth/http/answer.h"
#include "berth/net/listener.h"

namespace berth::serve {

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

}  // namespace berth::serve
