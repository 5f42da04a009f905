#pragma once

#include <string>
#include <vector>

#include "berth/verdict/choice.h"

namespace berth {

/// A looser request that would succeed now.
struct Suggestion {
  std::string change;  ///< what to ask for instead: "free >= 11G instead of free >= 20G"
  Request request;     ///< with the change
  Choice choice;       ///< what it would get
};

/// Requests that differ from `request` in one point and would succeed now, the most useful first,
/// at most three: a threshold or a promise lowered as little as needed, fewer devices, a condition
/// or a list of devices left out, or a device that is shared. Empty if the request itself succeeds,
/// or if no single change is enough.
std::vector<Suggestion> loosen(const Request& request, const Ledger& ledger, const Facts& facts);

}  // namespace berth
