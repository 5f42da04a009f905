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

#include "berth/http/answer.h"
#include "berth/net/gzip.h"
#include "berth/net/listener.h"

namespace berth::net {

/// The new part of a stream, compressed to follow the text before it. It is for a client whose text
/// ends with the frame `after` and has every frame since `since`.
struct DeltaChunk {
  std::uint64_t since = 0;
  std::uint64_t after = 0;
  std::uint64_t number = 0;  ///< number of its last frame
  net::SharedPacked packed{};
  std::size_t bytes = 0;  ///< of the text
};

/// The position of a client in a stream, and what to send it next.
class StreamCursor {
 public:
  /// The client has the frames up to `sent`, from this or an earlier connection.
  StreamCursor(std::string path, std::uint64_t sent)
      : path_(std::move(path)), sent_(sent), whole_(sent), since_(sent) {}

  /// For a client that takes compressed text. nullptr: there is no text that it could read after
  /// what it has.
  const DeltaChunk* delta(const http::ByPath<DeltaChunk>& deltas);
  /// Some of the next frames. If there are newer frames when the client has taken these, the newer
  /// ones replace the rest.
  http::Parts frames(const http::Published& published);
  /// To be called if the client was sent another text than the clients that are up to date.
  void is_interrupted() { since_ = sent_; }

 private:
  std::string path_;
  std::uint64_t sent_;
  std::uint64_t whole_;  ///< the client has all that was published up to this number
  std::uint64_t since_;  ///< the client has the text of every frame after this number, and no other text
                         ///< between
};

/// Makes the sequels of all streams from one publication to the next. Not for two threads at once.
class DeltaChunks {
 public:
  /// The sequels for what is published now, only for streams that have a reader.
  http::ByPath<DeltaChunk> take(const http::Published& published,
                                const std::set<std::string, std::less<>>& read);
  /// To be called if something was published of which take() did not see the end.
  void forget();

 private:
  /// The end of a stream as it was published last.
  struct End {
    std::uint64_t since = 0;  ///< the first number of the frames in the context
    std::uint64_t number = 0;
    std::string context{};
  };

  http::ByPath<End> ends_;
  http::ByPath<DeltaChunk> deltas_;
};

/// Knows which streams have a reader. For all threads.
class Readership {
 public:
  /// A reader, as long as this object lives.
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

/// Makes the sequels in a thread of its own.
class DeltaThread {
 public:
  /// Called in any thread, in the order of publication.
  using Show = std::function<void(std::shared_ptr<const http::Published>, http::ByPath<DeltaChunk>)>;

  /// REQUIRES: `readership` outlives this object.
  DeltaThread(const Readership& readership, Show show) : readership_(readership), show_(std::move(show)) {}

  /// May be called in any thread. The first publication is shown before this returns, without
  /// sequels.
  void publish(std::shared_ptr<const http::Published> published);
  /// Frees it in that thread, if nobody else has it: for a thousand hosts that takes a while.
  void drop(std::shared_ptr<const http::Published> published);

 private:
  void make(const http::Published& published, http::ByPath<DeltaChunk>& made);

  const Readership& readership_;
  Show show_;
  DeltaChunks deltas_;
  std::atomic<bool> is_first_ = true;
  asio::thread_pool thread_{1};
};

}  // namespace berth::net
