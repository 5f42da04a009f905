#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  net::Coroutine<Result<std::string>> ask(const EtcdQuestion& question,
                                          std::chrono::milliseconds patience = kEtcdPatience);

  /// From now on asks another member.
  void use_next_member();
  /// The member that is asked, with the last valid token.
  const http::Peer& member() const { return member_; }

 private:
  void use_member(std::size_t which);
  void show(std::string token);
  net::Coroutine<Result<std::string>> post(const EtcdQuestion& question, std::chrono::milliseconds patience);
  net::Coroutine<Result<void>> log_in();
  bool has_way_in() const { return lets_all_in_ || !member_.token.empty(); }

  asio::io_context& loop_;
  std::shared_ptr<net::ClientSharing> sharing_;
  const EtcdAccess& access_;
  std::size_t which_ = 0;
  http::Peer member_;
  bool lets_all_in_ = false;  ///< it said so, and has not asked for a user since
  std::unique_ptr<net::Client> client_;
};

/// Knows what is in the store: it has read all keys once, and a watch of etcd tells it each change.
/// A watch can stop reporting without an error. So this also asks, now and then, whether it has
/// missed a change.
class EtcdReading : public std::enable_shared_from_this<EtcdReading> {
 public:
  /// `rung` is called when there is news.
  EtcdReading(asio::io_context& loop, const EtcdAccess& access, std::function<void()> rung);

  /// Starts, for as long as the loop runs. To be called once.
  void start();

  /// Brings `now()` up to date with the store. Asks the store if there is a doubt, or if `ask`.
  /// False: it has read a part, and must be called again. Not for two callers at a time, as all
  /// functions that ask. Error: `failure`; the store has not answered.
  net::Coroutine<Result<bool>> be_current(bool ask);
  /// Nothing of what lies there is known, and nobody has begun to read it.
  bool is_unread() const { return !copy_.is_whole() && pages_.values.empty(); }
  const LabCopy& now() const { return copy_; }
  /// A change that was made is in now() at once. If a change could not be made, its conditions no
  /// longer hold: then all keys are read again.
  net::Coroutine<Result<ChangeAnswer>> change(LabChange wanted);
  net::Coroutine<Result<std::string>> ask(EtcdQuestion question,
                                          std::chrono::milliseconds patience = kEtcdPatience);
  /// Tells the newest revision of the store, which a silent watch may not know.
  void is_at(std::uint64_t revision);

  /// Nobody needs the store's contents for a while.
  void forget();
  /// To be called if the member that is asked does not answer.
  void use_next_member();
  const http::Peer& member() const { return client_.member(); }

 private:
  /// Of what the copy has. Each is worse than the one before.
  enum class Doubt {
    none,
    reached_late,   ///< the store, or its watch, was not reached for a moment
    missed_change,  ///< the watch has not told what it should have
    torn,           ///< all keys have to be read again
  };
  /// Asks which store it is, and for its newest revision.
  struct FoundStore {
    std::string mark;
    std::uint64_t revision = 0;
  };

  void doubt(Doubt doubt) { doubt_ = std::max(doubt_, doubt); }
  static net::Coroutine<> watch(std::shared_ptr<EtcdReading> self);
  void hear(std::string_view text);
  void begin_watch_anew();
  net::Coroutine<Result<StoredRange>> read(EtcdQuestion question,
                                           std::chrono::milliseconds patience = kEtcdPatience);
  net::Coroutine<Result<FoundStore>> find_store();
  net::Coroutine<Result<bool>> read_page();
  net::Coroutine<Result<bool>> look_for_missed();

  asio::io_context& loop_;
  std::function<void()> rung_;
  std::shared_ptr<net::ClientSharing> sharing_;
  EtcdClient client_;
  LabCopy copy_;
  Doubt doubt_ = Doubt::none;
  StoredRange pages_;           ///< the pages that were read so far
  std::uint64_t expected_ = 0;  ///< the newest revision of the store that was told last
  std::unique_ptr<net::Client> watched_;
  bool is_watch_to_begin_anew_ = false;  ///< the end of the watch is expected
  std::string input_;
  net::Timer need_;  ///< the task waits for this timer while nobody needs the watch
};

/// etcd keeps every change until somebody tells it to forget the old ones. Says how far it may
/// forget: every ten minutes, up to where the store was ten minutes ago. A watch that was cut off
/// for no longer goes on where it was. Pure.
class Compaction {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  /// The store was heard to have come to this revision.
  void is_at(std::uint64_t revision, Instant now);
  /// The revision before which all may be forgotten now. nullopt: it is not time for it. Not given
  /// twice.
  std::optional<std::uint64_t> due(Instant now);

 private:
  struct Heard {
    Instant when;
    std::uint64_t revision = 0;
  };

  std::optional<Heard> noted_{};  ///< to be forgotten when it has been kept long enough
  std::uint64_t newest_ = 0;
};

/// That this machine is there, which the store has under a lease of etcd that is renewed; nothing
/// else is under a lease. With each renewal the agent learns how far the store has come, and when
/// it may forget.
class EtcdHeartbeat {
 public:
  using Instant = Compaction::Instant;

  /// `name`: of this machine in the store. `log`: a line for the admin.
  EtcdHeartbeat(std::shared_ptr<EtcdReading> store, std::string name,
                std::function<void(const std::string&)> log)
      : store_(std::move(store)), name_(std::move(name)), log_(std::move(log)) {}

  /// When it is to be renewed again. `anew`: the store does not show it any more; the lease may be
  /// there all the same. Error: `failure`; the store has not answered.
  net::Coroutine<Result<Instant>> renew(bool anew);

 private:
  net::Coroutine<Result<void>> let_forget(Instant now);

  std::shared_ptr<EtcdReading> store_;
  std::string name_;
  std::function<void(const std::string&)> log_;
  std::string lease_;  ///< "": the store has none of ours
  bool is_shown_ = false;
  Compaction compaction_;
  std::string forgetting_fault_;  ///< as it was logged; "": it does forget
};

}  // namespace berth::lab_queue
