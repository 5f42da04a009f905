#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "berth/verdict/ledger.h"

namespace berth {

/// Names of tickets as `short_name` gives them (verdict/ledger.h), for whoever names many: that one
/// goes through the whole ledger each time.
class ShortNames {
 public:
  explicit ShortNames(const Ledger& ledger);

  std::string of(TicketId id) const;

 private:
  std::vector<std::uint64_t> ids_{};  ///< with their digits turned round, in order
};

/// The names of the tickets of several ledgers, each made once. The ledgers outlive this.
class ShortNamesByLedger {
 public:
  const ShortNames& of(const Ledger& ledger) { return names_.try_emplace(&ledger, ledger).first->second; }

 private:
  std::map<const Ledger*, ShortNames> names_{};
};

}  // namespace berth
