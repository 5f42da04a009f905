// Machines of a lab resemble each other, and so do two looks at one machine. So most of an event is
// in the text that was sent before. A compressor for each client would use this, but would cost 256
// KiB and processor time for each client. All clients that are up to date have got the same text
// before, so they can get the same bytes. These are compressed once, with the end of the published
// text as the dictionary. A client that is behind gets parts that refer to no earlier text.
#include "berth/net/delta_chunks.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <vector>

namespace berth::net {
namespace {

/// Beyond that, as when all hosts are new at once, nearly nobody has what was before.
constexpr std::size_t kMostText = 4U << 20U;
constexpr std::size_t kMostFramesAtOnce = 16;
/// Refers to nothing, so it follows any text.
constexpr std::uint64_t kAlways = std::numeric_limits<std::uint64_t>::max();

struct News {
  http::Parts parts;
  std::size_t bytes = 0;
};

News news_after(const std::vector<http::Frame>& frames, std::uint64_t number) {
  News news;
  for (auto frame = std::ranges::upper_bound(frames, number, {}, &http::Frame::number); frame != frames.end();
       ++frame) {
    for (const http::Part& part : frame->parts_after(number)) {
      news.bytes += part.text->size();
      news.parts.push_back(part);
    }
  }
  return news;
}

std::string last_of(const http::Parts& parts) {
  std::string text;
  std::size_t first = parts.size();
  for (std::size_t bytes = 0; first > 0 && bytes < kMostContext;) bytes += parts[--first].text->size();
  for (; first < parts.size(); ++first) text += *parts[first].text;
  return text.size() > kMostContext ? text.substr(text.size() - kMostContext) : text;
}

}  // namespace

const DeltaChunk* StreamCursor::delta(const http::ByPath<DeltaChunk>& deltas) {
  const auto found = deltas.find(path_);
  if (found == deltas.end()) return nullptr;
  const DeltaChunk& delta = found->second;
  if (delta.after != sent_ || since_ > delta.since) return nullptr;
  sent_ = whole_ = delta.number;
  return &delta;
}

http::Parts StreamCursor::frames(const http::Published& published) {
  http::Parts parts;
  const auto stream = published.streams.find(path_);
  if (stream == published.streams.end()) return parts;
  const auto& frames = stream->second;
  auto next = std::ranges::upper_bound(frames, sent_, {}, &http::Frame::number);
  for (std::size_t count = 0; next != frames.end() && count < kMostFramesAtOnce; ++next, ++count) {
    const http::Parts& more = next->parts_after(whole_);
    parts.insert(parts.end(), more.begin(), more.end());
    sent_ = next->number;
    // Clients that were up to date get only the change, and the next frame refers to it.
    if (next->change && whole_ < next->change->since) is_interrupted();
  }
  // Frames may have been replaced while this client lagged; it is up to date only when it has the
  // last one.
  if (next == frames.end()) whole_ = sent_;
  return parts;
}

http::ByPath<DeltaChunk> DeltaChunks::take(const http::Published& published,
                                           const std::set<std::string, std::less<>>& read) {
  const auto is_gone = [&](const auto& each) {
    return !published.streams.contains(each.first) || !read.contains(each.first);
  };
  std::erase_if(ends_, is_gone);
  std::erase_if(deltas_, is_gone);
  for (const auto& [path, frames] : published.streams) {
    if (frames.empty() || !read.contains(path)) continue;
    const std::uint64_t number = frames.back().number;
    const auto known = ends_.find(path);
    if (known == ends_.end() || number < known->second.number) {
      // A client may have read other frames before.
      ends_[path] = {.since = kAlways, .number = number};
      deltas_.erase(path);
      continue;
    }
    End& end = known->second;
    if (number == end.number) continue;  // what is new of it is what was
    const News news = news_after(frames, end.number);
    deltas_.erase(path);
    if (news.bytes <= kMostText) {
      if (auto packed = packed_after(end.context, news.parts))
        deltas_[path] = {end.since, end.number, number,
                         std::make_shared<const http::Packed>(std::move(*packed)), news.bytes};
    }
    end = {.since = end.number, .number = number, .context = last_of(news.parts)};
  }
  return deltas_;
}

void DeltaChunks::forget() {
  ends_.clear();
  deltas_.clear();
}

Readership::Reader::Reader(Readership& all, const std::string& path) : all_(all) {
  const std::lock_guard lock(all_.mutex_);
  path_ = all_.paths_.insert(path);
}

Readership::Reader::~Reader() {
  const std::lock_guard lock(all_.mutex_);
  all_.paths_.erase(path_);
}

std::set<std::string, std::less<>> Readership::read() const {
  const std::lock_guard lock(mutex_);
  return {paths_.begin(), paths_.end()};
}

void DeltaThread::publish(std::shared_ptr<const http::Published> published) {
  const bool is_shown = is_first_.exchange(false);
  if (is_shown) show_(published, {});
  asio::post(thread_, [this, is_shown, published = std::move(published)]() mutable {
    http::ByPath<DeltaChunk> deltas;
    make(*published, deltas);
    if (!is_shown) show_(std::move(published), std::move(deltas));
  });
}

void DeltaThread::drop(std::shared_ptr<const http::Published> published) {
  asio::post(thread_, [published = std::move(published)]() mutable { published.reset(); });
}

void DeltaThread::make(const http::Published& published, http::ByPath<DeltaChunk>& made) {
  try {
    made = deltas_.take(published, readership_.read());
  } catch (const std::exception&) {  // for want of memory: each part is sent alone
    deltas_.forget();
  }
}

}  // namespace berth::net
