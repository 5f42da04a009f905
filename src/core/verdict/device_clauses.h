#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/verdict/verdict.h"

namespace berth {

/// Everything that the clauses ask about one device.
struct Case {
  const Request& request;
  const Facts& facts;
  const Device& device;
  std::vector<const Ticket*> leases;            ///< as leases_holding
  Reading<std::uint64_t> free_bytes;            ///< as free_for_lease
  bool chosen_by_user = false;                  ///< --devices names it
  bool excluded_by_user = false;                ///< --exclude names it
  std::optional<std::string> excluded_by_site;  ///< with the reason
  const PassedOver* passed_over = nullptr;      ///< null: it is not, or not for this request
  std::optional<std::string> vendor;            ///< if set, the request gets devices of this vendor only
};

struct Failure {
  std::string reason;
  std::vector<Culprit> culprits;
  std::size_t more_culprits{};  ///< as in Verdict
};

/// Its words are cut: each device that it keeps from others has them.
Culprit culprit_of(const Ticket& ticket);
/// The names of the users of these tickets, each once: "alice, bob", or "alice, bob, … and 12
/// more".
std::string names_of(const std::vector<const Ticket*>& tickets);
/// The user, or "uid 1000" if the name is not known.
std::string name_of(const Ticket& ticket);

/// The first clause up to `last` that fails, in the order of the enum. nullopt: all hold.
std::optional<std::pair<Clause, Failure>> first_failure(const Case& subject,
                                                        Clause last = Clause::thresholds);

}  // namespace berth
