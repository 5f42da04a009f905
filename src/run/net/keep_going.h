#pragma once

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <memory>

#include "berth/net/client_group.h"
#include "berth/net/listener.h"

namespace berth::net {

/// A task without an end. If memory runs out in the middle of it, it begins again a second later.
template <class Owner>
void keep_going(asio::io_context& loop, const std::shared_ptr<Owner>& owner,
                Task<> (*task)(std::shared_ptr<Owner>)) {
  asio::co_spawn(loop, task(owner), [&loop, owner, task](const std::exception_ptr& fault) {
    if (!fault) return;
    const auto pause = std::make_shared<Timer>(loop);
    pause->expires_after(std::chrono::seconds(1));
    pause->async_wait(
        [&loop, owner, task, pause](const boost::system::error_code&) { keep_going(loop, owner, task); });
  });
}

}  // namespace berth::net
