#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "berth/lab_queue/lab_connections.h"
#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/net/askers.h"
#include "berth/net/listener.h"
#include "berth/verdict/limits.h"

namespace berth::lab_queue {

/// What the users of this machine may have of the lab, as its site file says. All of it happens on
/// the loop.
class StoreLimits : public std::enable_shared_from_this<StoreLimits> {
 public:
  /// `limits`: of the site file.
  StoreLimits(asio::io_context& loop, SiteLimits limits);

  /// Whether there are limits over the lab at all.
  bool any() const { return any_; }
  /// Whether it is known which limits apply to this connection. One that runs needs none.
  bool are_known_for(const LabConnection& connection) const;

  /// Finds out whose limits apply to the connection, for as long as it is there. `told_late`: the
  /// name service has not answered for a while. `known`: it has, or the connection has gone.
  void learn(const Connection& connection, std::function<void()> told_late, std::function<void()> known);

  /// Says in the connection's ticket what its user may have at this hour. Returns why the user may
  /// never have so much.
  std::optional<std::string> apply_to(LabConnection& connection) const;
  /// Why the user may not start this one now. `taken`: what the user has of the lab, and what the
  /// user's earlier requests ask for.
  std::optional<std::string> why_over(const LabConnection& connection, const GpusByUser& has,
                                      std::uint64_t taken) const;

 private:
  static net::Task<> ask(std::shared_ptr<StoreLimits> self, Connection connection,
                         std::function<void()> told_late, std::function<void()> known);
  std::optional<UserLimits> now_for(const LabConnection& connection) const;

  asio::io_context& loop_;
  SiteLimits limits_;
  bool any_;
  net::Askers askers_;
};

}  // namespace berth::lab_queue
