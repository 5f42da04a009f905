#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/http/answer.h"

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

}  // namespace berth::net
