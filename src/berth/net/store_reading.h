#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "berth/agent/lab_mirror.h"
#include "berth/agent/store_place.h"
#include "berth/core/error.h"
#include "berth/net/client.h"
#include "berth/net/store_client.h"
#include "berth/render/lab_store.h"

namespace berth::serve {

/// Knows what lies in the store: it has read all of it once, and a watch of etcd tells it each change. A watch
/// can fall silent without a word, so it also asks, now and then, whether it has missed any.
class StoreReading : public std::enable_shared_from_this<StoreReading> {
 public:
  template <class T>
  using Promised = asio::awaitable<Result<T>, Executor>;

  /// `rung` is called where there is news.
  StoreReading(asio::io_context& loop, const StorePlace& place, std::function<void()> rung);

  /// From now on, for as long as the loop runs. To be called once.
  void start();

  /// Makes `now()` what the store has. `ask`: also if it was asked a moment ago. Not for two at a time, as
  /// with all that asks. Error: `failure`; the store has not answered.
  Promised<void> be_current(bool ask);
  const LabMirror& now() const { return mirror_; }
  /// What was made is in now() at once. What could not be made had conditions that hold no more: then all is
  /// read again.
  Promised<render::ChangeAnswer> change(render::StoreChange wanted);
  Promised<std::string> ask(std::string path, std::string body);

  /// Nobody needs it for a while.
  void forget();
  /// The member that is asked does not answer.
  void use_next_member();
  const Peer& member() const { return client_.member(); }

 private:
  using Instant = std::chrono::steady_clock::time_point;
  /// Which store it is, and how far it is.
  struct Found {
    std::string mark;
    std::uint64_t revision = 0;
  };

  static asio::awaitable<void, Executor> watch(std::shared_ptr<StoreReading> self);
  void hear(std::string_view text);
  void begin_watch_anew();
  Promised<render::StoredRange> read(std::string body);
  Promised<Found> find_store();
  Promised<void> read_all();
  Promised<void> look_for_missed();

  asio::io_context& loop_;
  std::function<void()> rung_;
  std::shared_ptr<ClientSharing> sharing_;
  StoreClient client_;
  LabMirror mirror_;
  bool is_torn_ = false;      ///< what is known has to be read again
  bool is_in_doubt_ = false;  ///< the store was not reached for a moment, or its watch
  Instant next_check_{};
  std::uint64_t expected_ = 0;  ///< how far the store was at the last check, where that was farther than this
  std::unique_ptr<Client> watched_;
  bool is_watch_to_begin_anew_ = false;  ///< its end is none that anybody wonders about
  std::string input_;
  Timer need_;  ///< is waited for while nobody needs what the watch tells
};

}  // namespace berth::serve
