#include "berth/net/gzip.h"

#define ZLIB_CONST
#include <zlib.h>

namespace berth::serve {
namespace {

constexpr std::size_t kWorthIt = 1024;
// Twice as quick as zlib's own choice, for pages a tenth longer: the event loop waits for it.
constexpr int kLevel = 4;
constexpr int kGzipWindow = 15 + 16;  // the 16 asks zlib for gzip's frame
constexpr int kMemory = 8;

SharedText gzip(const std::string& text) {
  z_stream stream{};
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return nullptr;
  std::string packed(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<const Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int done = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (done != Z_STREAM_END) return nullptr;
  return std::make_shared<const std::string>(std::move(packed));
}

}  // namespace

SharedText Packer::packed(const SharedText& text) {
  if (text->size() < kWorthIt) return nullptr;
  const auto known = packed_.find(text);
  if (known != packed_.end()) return known->second;
  // Answers to questions are texts of their own, and come also while nothing new is published.
  forget_what_is_gone();
  return packed_[text] = gzip(*text);
}

void Packer::forget_what_is_gone() {
  std::erase_if(packed_, [](const auto& each) { return each.first.expired(); });
}

}  // namespace berth::serve
