#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "berth/base/error.h"
#include "berth/lab_queue/etcd_access.h"
#include "berth/lab_queue/etcd_client.h"
#include "berth/net/client.h"

namespace berth::lab_queue {

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
  net::Task<Result<bool>> be_current(bool ask);
  /// Nothing of what lies there is known, and nobody has begun to read it.
  bool is_unread() const { return !copy_.is_whole() && pages_.values.empty(); }
  const LabCopy& now() const { return copy_; }
  /// A change that was made is in now() at once. If a change could not be made, its conditions no
  /// longer hold: then all keys are read again.
  net::Task<Result<ChangeAnswer>> change(LabChange wanted);
  net::Task<Result<std::string>> ask(EtcdQuestion question,
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
  struct Found {
    std::string mark;
    std::uint64_t revision = 0;
  };

  void doubt(Doubt doubt) { doubt_ = std::max(doubt_, doubt); }
  static net::Task<> watch(std::shared_ptr<EtcdReading> self);
  void hear(std::string_view text);
  void begin_watch_anew();
  net::Task<Result<StoredRange>> read(EtcdQuestion question,
                                      std::chrono::milliseconds patience = kEtcdPatience);
  net::Task<Result<Found>> find_store();
  net::Task<Result<bool>> read_page();
  net::Task<Result<bool>> look_for_missed();

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

}  // namespace berth::lab_queue
