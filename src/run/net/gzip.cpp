// A text that many clients get is compressed once, however it stands beside others. Each part ends
// with a full flush: at a whole byte, and what follows refers to nothing before it, so parts can be
// joined like texts. The checksum of the whole is made of theirs. That costs twice the bytes of one
// deflate over all, and no time when somebody asks.
#include "berth/net/gzip.h"

#define ZLIB_CONST
#include <zlib.h>

#include <array>

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

}  // namespace berth::net
