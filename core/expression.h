#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/snapshot.h"

namespace berth {

/// What an expression may ask of a device. `free_bytes` is the number that a lease counts by, which is
/// not the driver's (see verdict.h).
struct DeviceFacts {
  const Device& device;
  Reading<std::uint64_t> free_bytes;
};

/// Why an expression does not hold.
struct Unmet {
  std::string condition;  ///< the comparison that decided, as text: "free >= 20GiB"
  std::string actual;     ///< what was found: "11.2 GiB", or "not available"

  bool operator==(const Unmet&) const = default;
};

/// A condition on a device: `name~A100 and free>=20G and (util<=5 or temp<80)`. The language is
/// described in docs/expressions.md. A value; parsing and evaluation are pure.
class Expression {
 public:
  /// Error: `usage`, with the text, the column and what was expected there.
  static Result<Expression> parse(std::string_view text);

  /// Holds (nullopt), or the first comparison that makes it fail. A reading that is absent fails the
  /// comparison that needs it.
  std::optional<Unmet> unmet_by(const DeviceFacts& facts) const;

  /// The readings that its fields need.
  ReadingSet readings() const;
  /// True if it only asks what never changes while the machine runs (name, index, total memory …).
  bool is_static() const;
  /// Its parts joined by "and" at the top level: `a and (b or c)` gives two.
  std::vector<Expression> conjuncts() const;
  /// As parsed, without superfluous space.
  const std::string& text() const { return text_; }

 private:
  struct Node;
  std::shared_ptr<const Node> root_;
  std::string text_;
};

}  // namespace berth
