#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/host_facts.h"
#include "berth/core/snapshot.h"

namespace berth {

/// What an expression may ask of a device. `free_bytes` is the number that a lease counts by, which is
/// not the driver's (see verdict.h).
struct DeviceFacts {
  const Device& device;
  Reading<std::uint64_t> free_bytes;
  const HostFacts* host = nullptr;  ///< null: not known
};

/// Why an expression does not hold.
struct Unmet {
  std::string condition;  ///< the part that decided, as text: "free >= 20G"
  std::string actual;     ///< what was found: "11.2 GiB"; "not available"; for a part with several
                          ///< comparisons with their fields: "util 40 %, temp 81 C"

  bool operator==(const Unmet&) const = default;
};

/// An expression that is one comparison of a number with <, <=, > or >=.
struct Threshold {
  std::string field;      ///< "free"
  bool at_least = false;  ///< > or >=; else < or <=
  bool strict = false;    ///< > or <
  bool share = false;     ///< `value` is a percentage of the device's total memory
  double value = 0;       ///< bytes, percent, °C, W, MHz, a number, or 10 × a compute capability
};

struct ExpressionNode;

/// A condition on a device: `name~A100 and free>=20G and (util<=5 or temp<80)`. The language is
/// described in docs/expressions.md. A value; parsing and evaluation are pure. One that was made without
/// text holds always.
class Expression {
 public:
  /// Error: `usage`, with the text, the column and what was expected there.
  static Result<Expression> parse(std::string_view text);

  /// `text` as a value in an expression that means exactly this text.
  static std::string quoted(std::string_view text);

  /// Holds (nullopt), or the first part that makes it fail. A reading that is absent fails the
  /// comparison that needs it, and the opposite of that comparison too.
  std::optional<Unmet> unmet_by(const DeviceFacts& facts) const;

  /// What of it can never hold on this device of this host, whatever its changing readings (free memory,
  /// utilisation …) will be: `name~H100` on an A100, `free>=100G` where the card has 80. nullopt: it may.
  std::optional<Unmet> never_met_by(const Device& device, const HostFacts* host = nullptr) const;

  /// The readings that its fields need.
  ReadingSet readings() const;
  /// True if it only asks what never changes while the machine runs (name, index, total memory …).
  bool is_static() const;
  /// Its parts joined by "and" at the top level: `a and (b or c)` gives two.
  std::vector<Expression> conjuncts() const;

  /// nullopt: it is not a single threshold.
  std::optional<Threshold> threshold() const;
  /// The same threshold, moved in round numbers just so far that `facts` meet it. nullopt: it is not a
  /// threshold, the reading is absent, or no threshold would be left (free >= 0).
  std::optional<Expression> loosened_for(const DeviceFacts& facts) const;

  /// As parsed, with uniform space. Parses to the same expression.
  const std::string& text() const { return text_; }

 private:
  explicit Expression(std::shared_ptr<const ExpressionNode> root);

  std::shared_ptr<const ExpressionNode> root_;
  std::string text_;

 public:
  Expression() = default;
};

}  // namespace berth
