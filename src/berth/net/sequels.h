#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "berth/agent/answer.h"
#include "berth/net/gzip.h"
#include "berth/net/listener.h"

namespace berth::serve {

/// What of a stream is new, compressed as what follows the text before it. It is for a client whose text ends
/// with the frame `after` and has every frame since `since`.
struct Sequel {
  std::uint64_t since = 0;
  std::uint64_t after = 0;
  std::uint64_t number = 0;  ///< of its last frame
  SharedPacked packed{};
  std::size_t bytes = 0;  ///< of the text
};

/// How far a client is in a stream, and what it is sent next.
class StreamPlace {
 public:
  /// The client has the frames up to `sent`, from whatever connection.
  StreamPlace(std::string path, std::uint64_t sent)
      : path_(std::move(path)), sent_(sent), whole_(sent), since_(sent) {}

  /// For one that takes compressed text: nullptr where there is none that it could read after what it has.
  const Sequel* sequel(const ByPath<Sequel>& sequels);
  /// Some of the next frames: what is newer when the client has taken them takes the place of the rest.
  Parts frames(const Published& published);
  /// It was sent something else than those that were not behind.
  void is_interrupted() { since_ = sent_; }

 private:
  std::string path_;
  std::uint64_t sent_;
  std::uint64_t whole_;  ///< all that was published up to it, the client has
  std::uint64_t since_;  ///< of all after it the client has the text, and nothing between
};

/// Makes the sequels of all streams, of what is published one after another. Not for two threads at once.
class Sequels {
 public:
  /// Of what is published now, for the streams that somebody reads.
  ByPath<Sequel> take(const Published& published, const std::set<std::string, std::less<>>& read);
  /// Where something was published that take() did not see to its end.
  void forget();

 private:
  /// How a stream ended when it was published last.
  struct End {
    std::uint64_t since = 0;  ///< of the frames that the context is of
    std::uint64_t number = 0;
    std::string context{};
  };

  ByPath<End> ends_;
  ByPath<Sequel> sequels_;
};

/// Which streams somebody reads. For all threads.
class Readership {
 public:
  /// One who reads, for as long as it lasts.
  class Reader {
   public:
    Reader(Readership& all, const std::string& path);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    Readership& all_;
    std::multiset<std::string>::iterator path_;
  };

  std::set<std::string, std::less<>> read() const;

 private:
  mutable std::mutex mutex_;
  std::multiset<std::string> paths_;
};

/// Does that in a thread of its own.
class SequelThread {
 public:
  /// Called in any thread, in the order of what is published.
  using Show = std::function<void(std::shared_ptr<const Published>, ByPath<Sequel>)>;

  /// REQUIRES: `readership` outlives this.
  SequelThread(const Readership& readership, Show show) : readership_(readership), show_(std::move(show)) {}

  /// From any thread. What is published first is shown before this returns, without sequels.
  void publish(std::shared_ptr<const Published> published);
  /// Frees it there, where nobody else has it: of a thousand hosts that takes a while.
  void drop(std::shared_ptr<const Published> published);

 private:
  void make(const Published& published, ByPath<Sequel>& made);

  const Readership& readership_;
  Show show_;
  Sequels sequels_;
  std::atomic<bool> is_first_ = true;
  asio::thread_pool thread_{1};
};

}  // namespace berth::serve
