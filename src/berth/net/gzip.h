#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/agent/answer.h"

namespace berth::serve {

using SharedPacked = std::shared_ptr<const Packed>;

/// In compressed form, made where nobody has made it yet. What is short is only framed. The text has less
/// than 4 GiB.
SharedPacked packed_form(const Part& part);
/// Gives long parts their compressed form, which takes a while.
void pack(Part& part);
void pack(Published& published);
/// The most of a text that what follows it can refer to.
inline constexpr std::size_t kMostContext = 32U << 10U;
/// `text` where it follows `context`, to which it refers: much less than each part alone. nullopt: for want
/// of memory.
std::optional<Packed> packed_after(std::string_view context, const Parts& text);

/// What gzip has around the parts of one stream.
class GzipFrame {
 public:
  static std::string_view start();
  /// Of what follows.
  void take(const Packed& packed, std::size_t size);
  std::string end() const;

 private:
  std::uint64_t size_ = 0;
  unsigned long crc_ = 0;
};

/// A whole answer, compressed.
struct PackedAnswer {
  std::vector<SharedPacked> parts;
  std::string end;
  std::size_t bytes = 0;
};

/// The compressed form of what many clients get, put together for the first that takes it and kept as long as
/// the text is.
class Packer {
 public:
  /// nullptr: it is too short to be worth it.
  std::shared_ptr<const PackedAnswer> packed(const Page& page);
  void forget_what_is_gone();

 private:
  std::map<std::weak_ptr<const void>, std::shared_ptr<const PackedAnswer>, std::owner_less<>> packed_;
};

}  // namespace berth::serve
