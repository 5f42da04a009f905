#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "berth/http/answer.h"
#include "berth/net/worker.h"

namespace berth::net {

/// Answers that take some time. The loop goes on meanwhile.
class BackgroundAnswers {
 public:
  explicit BackgroundAnswers(asio::io_context& loop) : loop_(loop), worker_(loop) {}

  void set_patience(std::chrono::seconds patience) { patience_ = patience; }

  /// The reply may come in another thread, before or after this returns, or never.
  Task<http::Page> run(const http::ServiceCall& service_call);
  /// An answer made from what was published under this number. It is made once for all clients that
  /// ask for the same `target`.
  Task<http::Page> answer(const http::Question& question, std::string target, std::uint64_t number);

 private:
  struct Asked {
    std::optional<http::Page> page;
    std::vector<std::shared_ptr<Timer>> waiting;
  };

  Task<http::Page> work_out(const http::Question& question);
  Task<http::Page> wait_for(std::shared_ptr<Asked> asked);

  asio::io_context& loop_;
  Worker worker_;
  std::chrono::seconds patience_{};
  std::size_t under_way_ = 0;
  std::uint64_t number_ = 0;
  std::map<std::string, std::shared_ptr<Asked>> asked_;  // of that number, by target
};

}  // namespace berth::net
