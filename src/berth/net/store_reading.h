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

/// Knows what lies in the store: it has read all of it once, and a watch of etcd tells it each change. A
/// watch can fall silent without a word, so it also asks, now and then, whether it has missed any.
class StoreReading : public std::enable_shared_from_this<StoreReading> {
 public:
  template <class T>
  using Promised = asio::awaitable<Result<T>, Executor>;

  /// `rung` is called where there is news.
  StoreReading(asio::io_context& loop, const StorePlace& place, std::function<void()> rung);

  /// From now on, for as long as the loop runs. To be called once.
  void start();

  /// Makes `now()` what the store has; asks it if there is a doubt, and if `ask`. False: it has read a part
  /// of it, and is to be called again. Not for two at a time, as with all that asks. Error: `failure`; the
  /// store has not answered.
  Promised<bool> be_current(bool ask);
  /// Nothing of what lies there is known, and nobody has begun to read it.
  bool is_unread() const { return !mirror_.is_whole() && pages_.values.empty(); }
  const LabMirror& now() const { return mirror_; }
  /// What was made is in now() at once. What could not be made had conditions that hold no more: then all is
  /// read again.
  Promised<render::ChangeAnswer> change(render::StoreChange wanted);
  Promised<std::string> ask(std::string path, std::string body,
                            std::chrono::milliseconds patience = kStorePatience);
  /// Somebody was told how far the store is, which a watch that says nothing may not know.
  void is_at(std::uint64_t revision);

  /// Nobody needs it for a while.
  void forget();
  /// The member that is asked does not answer.
  void use_next_member();
  const Peer& member() const { return client_.member(); }

 private:
  /// Which store it is, and how far it is.
  struct Found {
    std::string mark;
    std::uint64_t revision = 0;
  };

  static asio::awaitable<void, Executor> watch(std::shared_ptr<StoreReading> self);
  void hear(std::string_view text);
  void begin_watch_anew();
  Promised<render::StoredRange> read(std::string body, std::chrono::milliseconds patience = kStorePatience);
  Promised<Found> find_store();
  Promised<bool> read_page();
  Promised<bool> look_for_missed();

  asio::io_context& loop_;
  std::function<void()> rung_;
  std::shared_ptr<ClientSharing> sharing_;
  StoreClient client_;
  LabMirror mirror_;
  bool is_torn_ = false;        ///< what is known has to be read again
  bool is_in_doubt_ = false;    ///< the store was not reached for a moment, or its watch
  render::StoredRange pages_;   ///< what was read of all so far
  bool has_missed_ = false;     ///< the watch has not told what it should have
  std::uint64_t expected_ = 0;  ///< how far the store was when somebody was told last
  std::unique_ptr<Client> watched_;
  bool is_watch_to_begin_anew_ = false;  ///< its end is none that anybody wonders about
  std::string input_;
  Timer need_;  ///< is waited for while nobody needs what the watch tells
};

}  // namespace berth::serve
