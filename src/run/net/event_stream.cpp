#include "berth/net/event_stream.h"

#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <vector>

// A text that many clients get is compressed once, however it stands beside others. Each part ends
// with a full flush: at a whole byte, and what follows refers to nothing before it, so parts can be
// joined like texts. The checksum of the whole is made of theirs. That costs twice the bytes of one
// deflate over all, and no time when somebody asks.

namespace berth::net {
namespace {

constexpr std::size_t kWorthIt = 1024;
constexpr std::size_t kMostStored = 0xffff;  // in one block of deflate
constexpr int kRawWindow = -15;              // deflate without a frame of zlib's
constexpr int kMemory = 8;
constexpr int kThorough = 8;  // what is compressed once for many may take longer

void append_little_endian(std::string& text, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((number >> (8 * i)) & 0xffU);
}

std::uint32_t crc_of(std::string_view text) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

/// As it is, in blocks that say how long they are.
std::string stored(std::string_view text) {
  std::string bytes;
  do {
    const std::string_view block = text.substr(0, kMostStored);
    bytes += '\0';
    append_little_endian(bytes, block.size(), 2);
    append_little_endian(bytes, ~block.size(), 2);
    bytes += block;
    text.remove_prefix(block.size());
  } while (!text.empty());
  return bytes;
}

std::string deflated(std::string_view text) {
  z_stream stream{};
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRawWindow, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return stored(text);
  constexpr std::size_t kOfFlush = 16;
  std::string bytes(::deflateBound(&stream, text.size()) + kOfFlush, '\0');
  stream.next_in = reinterpret_cast<const Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  const int done = ::deflate(&stream, Z_FULL_FLUSH);
  const bool is_whole = done == Z_OK && stream.avail_in == 0 && stream.avail_out > 0;
  bytes.resize(stream.total_out);
  ::deflateEnd(&stream);
  bytes.shrink_to_fit();
  return is_whole ? bytes : stored(text);
}

}  // namespace

net::SharedPacked packed_form(const http::Part& part) {
  if (part.packed) return part.packed;
  const std::string& text = *part.text;
  return std::make_shared<const http::Packed>(
      http::Packed{text.size() < kWorthIt ? stored(text) : deflated(text), crc_of(text)});
}

void pack(http::Part& part) {
  if (!part.packed && part.text->size() >= kWorthIt) part.packed = packed_form(part);
}

void pack(http::Published& published) {
  for (auto& [path, frames] : published.streams) {
    for (http::Frame& frame : frames) {
      for (http::Part& part : frame.parts) pack(part);
    }
  }
}

std::optional<http::Packed> packed_after(std::string_view context, const http::Parts& text) {
  z_stream stream{};
  if (::deflateInit2(&stream, kThorough, Z_DEFLATED, kRawWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return std::nullopt;
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream, ::deflateEnd);
  if (!context.empty())
    ::deflateSetDictionary(&stream, reinterpret_cast<const Bytef*>(context.data()),
                           static_cast<uInt>(context.size()));
  http::Packed packed;
  std::array<char, kMostStored> piece{};
  const auto take = [&](std::string_view more, int flush) {
    stream.next_in = reinterpret_cast<const Bytef*>(more.data());
    stream.avail_in = static_cast<uInt>(more.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(piece.size());
      ::deflate(&stream, flush);
      packed.bytes.append(piece.data(), piece.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  ::uLong crc = 0;
  for (const http::Part& part : text) {
    take(*part.text, Z_NO_FLUSH);
    crc =
        ::crc32(crc, reinterpret_cast<const Bytef*>(part.text->data()), static_cast<uInt>(part.text->size()));
  }
  take({}, Z_SYNC_FLUSH);
  packed.crc = static_cast<std::uint32_t>(crc);
  packed.bytes.shrink_to_fit();
  return packed;
}

std::string_view GzipFrame::start() {
  using namespace std::string_view_literals;
  return "\x1f\x8b\x08\0\0\0\0\0\0\xff"sv;
}

void GzipFrame::take(const http::Packed& packed, std::size_t size) {
  crc_ = ::crc32_combine(crc_, packed.crc, static_cast<z_off_t>(size));
  size_ += size;
}

std::string GzipFrame::end() const {
  std::string bytes = "\x03";  // the last block, which is empty
  bytes += '\0';
  append_little_endian(bytes, crc_, 4);
  append_little_endian(bytes, size_, 4);
  return bytes;
}

std::shared_ptr<const PackedAnswer> Packer::packed(const http::Page& page) {
  if (!page.parts && page.text->size() < kWorthIt) return nullptr;
  const std::shared_ptr<const void> key =
      page.parts ? std::shared_ptr<const void>(page.parts) : std::shared_ptr<const void>(page.text);
  if (const auto known = packed_.find(key); known != packed_.end()) return known->second;
  // Answers to questions are texts of their own, and come also while nothing new is published.
  forget_what_is_gone();
  auto answer = std::make_shared<PackedAnswer>();
  GzipFrame frame;
  answer->bytes = GzipFrame::start().size();
  const auto add = [&](const http::Part& part) {
    const net::SharedPacked& packed = answer->parts.emplace_back(packed_form(part));
    frame.take(*packed, part.text->size());
    answer->bytes += packed->bytes.size();
  };
  if (page.parts) {
    for (const http::Part& part : *page.parts) add(part);
  } else {
    add({page.text, nullptr});
  }
  answer->end = frame.end();
  answer->bytes += answer->end.size();
  return packed_[key] = answer;
}

void Packer::forget_what_is_gone() {
  std::erase_if(packed_, [](const auto& each) { return each.first.expired(); });
}

// Machines of a lab resemble each other, and so do two looks at one machine. So most of an event is
// in the text that was sent before. A compressor for each client would use this, but would cost 256
// KiB and processor time for each client. All clients that are up to date have got the same text
// before, so they can get the same bytes. These are compressed once, with the end of the published
// text as the dictionary. A client that is behind gets parts that refer to no earlier text.

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
