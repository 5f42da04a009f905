#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "berth/base/error.h"
#include "berth/lab_queue/etcd_access.h"
#include "berth/lab_queue/etcd_messages.h"
#include "berth/net/client.h"

namespace berth::lab_queue {

inline constexpr std::chrono::milliseconds kEtcdPatience{3000};

/// Asks the store, one member of it after another, as its user. It takes a token when it has none
/// that holds, with the password that the file has then. An etcd that has no passwords is asked
/// without one, until it has: so agents may be told their user before etcd asks for it.
class EtcdClient {
 public:
  EtcdClient(asio::io_context& loop, std::shared_ptr<net::ClientSharing> sharing, const EtcdAccess& access);

  /// The whole answer, of any status. Error: `failure`, with the member that did not answer within
  /// `patience`, and why.
  net::Task<Result<std::string>> ask(const EtcdQuestion& question,
                                     std::chrono::milliseconds patience = kEtcdPatience);

  /// From now on asks another member.
  void use_next_member();
  /// The member that is asked, with the last valid token.
  const http::Peer& member() const { return member_; }

 private:
  void use_member(std::size_t which);
  void show(std::string token);
  net::Task<Result<std::string>> post(const EtcdQuestion& question, std::chrono::milliseconds patience);
  net::Task<Result<void>> log_in();
  bool has_way_in() const { return lets_all_in_ || !member_.token.empty(); }

  asio::io_context& loop_;
  std::shared_ptr<net::ClientSharing> sharing_;
  const EtcdAccess& access_;
  std::size_t which_ = 0;
  http::Peer member_;
  bool lets_all_in_ = false;  ///< it said so, and has not asked for a user since
  std::unique_ptr<net::Client> client_;
};

}  // namespace berth::lab_queue
