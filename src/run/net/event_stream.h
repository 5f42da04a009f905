#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/http/answer.h"
#include "berth/net/listener.h"

namespace berth::net {

using SharedPacked = std::shared_ptr<const http::Packed>;

/// The compressed form of a part, made now if it does not exist yet. A short text is only framed.
/// REQUIRES: less than 4 GiB.
net::SharedPacked packed_form(const http::Part& part);
/// Makes the compressed form of long parts, which takes a while.
void pack(http::Part& part);
void pack(http::Published& published);
/// How much of a text the text that follows it can refer to, in bytes.
inline constexpr std::size_t kMostContext = 32U << 10U;
/// `text` compressed to follow `context`, to which it refers; that is much shorter than each part
/// alone. nullopt: there is not enough memory.
std::optional<http::Packed> packed_after(std::string_view context, const http::Parts& text);

/// The head and the end that gzip has around the parts of one stream.
class GzipFrame {
 public:
  static std::string_view start();
  /// Of what follows.
  void take(const http::Packed& packed, std::size_t size);
  std::string end() const;

 private:
  std::uint64_t size_ = 0;
  unsigned long crc_ = 0;
};

/// A whole answer, compressed.
struct PackedAnswer {
  std::vector<net::SharedPacked> parts;
  std::string end;
  std::size_t bytes = 0;
};

/// The compressed form of a text for many clients. It is made for the first client that takes it,
/// and kept as long as the text.
class Packer {
 public:
  /// nullptr: the text is too short to be compressed.
  std::shared_ptr<const PackedAnswer> packed(const http::Page& page);
  void forget_what_is_gone();

 private:
  std::map<std::weak_ptr<const void>, std::shared_ptr<const PackedAnswer>, std::owner_less<>> packed_;
};

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

/// The text for one client of an event stream, compressed if the client accepts that. Keeps the
/// memory of the buffers until the next buffers are asked for.
class EventText {
 public:
  explicit EventText(bool is_packed) : is_packed_(is_packed) {}

  using Buffers = std::vector<asio::const_buffer>;

  Buffers start(const std::string& head) const {
    Buffers buffers{asio::buffer(head)};
    if (is_packed_) buffers.push_back(asio::buffer(GzipFrame::start()));
    return buffers;
  }

  Buffers following(http::Parts parts) {
    parts_ = std::move(parts);
    Buffers buffers;
    for (http::Part& part : parts_) {
      if (!is_packed_) {
        buffers.push_back(asio::buffer(*part.text));
        continue;
      }
      part.packed = packed_form(part);
      frame_.take(*part.packed, part.text->size());
      buffers.push_back(asio::buffer(part.packed->bytes));
    }
    return buffers;
  }

  Buffers following(const DeltaChunk& delta) {
    delta_ = delta.packed;
    frame_.take(*delta_, delta.bytes);
    return {asio::buffer(delta_->bytes)};
  }

  Buffers end() {
    if (!is_packed_) return {};
    end_ = frame_.end();
    return {asio::buffer(end_)};
  }

 private:
  bool is_packed_;
  GzipFrame frame_;
  http::Parts parts_;
  net::SharedPacked delta_;
  std::string end_;
};

}  // namespace berth::net
