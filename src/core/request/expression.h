#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/host_facts.h"
#include "berth/device/snapshot.h"

namespace berth {

/// What an expression may ask of a device. `free_bytes` is the free memory as leases count it, not
/// as the driver does (see verdict.h).
struct DeviceFacts {
  const Device& device;
  Reading<std::uint64_t> free_bytes;
  const HostFacts* host = nullptr;  ///< null: not known
};

/// Why an expression does not hold.
struct Unmet {
  std::string condition;  ///< the part that failed, as text: "free >= 20G"
  std::string actual;     ///< what was found: "11.2 GiB"; "not available"; if the part has several
                          ///< comparisons, with their fields: "util 40 %, temp 81 C"

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

/// A condition on a device: `name~A100 and free>=20G and (util<=5 or temp<80)`. docs/expressions.md
/// describes the language. A value; parsing and evaluation are pure. An expression that was made
/// without text always holds.
class Expression {
 public:
  /// Error: `usage`, with the text, the column and what was expected there.
  static Result<Expression> parse(std::string_view text);

  /// `text`, quoted so that it stands for exactly this text as a value in an expression.
  static std::string quoted(std::string_view text);
  /// The text that a quoted one stands for; a text without quotes as it is.
  static std::string unquoted(std::string_view text);

  /// nullopt: the expression holds. Otherwise the first part that makes it fail. If a reading is
  /// absent, the comparison that needs it fails, and so does the opposite comparison.
  std::optional<Unmet> unmet_by(const DeviceFacts& facts) const;

  /// The part that can never hold on this device of this host, whatever its changing readings (free
  /// memory, utilisation …) will be: `name~H100` on an A100, `free>=100G` on a card with 80.
  /// nullopt: the expression may hold some time.
  std::optional<Unmet> never_met_by(const Device& device, const HostFacts* host = nullptr) const;

  /// The readings that its fields need.
  ReadingSet readings() const;
  /// Its parts joined by "and" at the top level: `a and (b or c)` gives two.
  std::vector<Expression> conjuncts() const;

  /// nullopt: it is not a single threshold.
  std::optional<Threshold> threshold() const;
  /// The same threshold with another round number, changed no more than needed for `facts` to meet
  /// it. nullopt: it is not a threshold, the reading is absent, or no threshold would be left (free
  /// >= 0).
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
