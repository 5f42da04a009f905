#pragma once

#include <expected>
#include <functional>
#include <string>
#include <utility>

#include "berth/core/error.h"

namespace berth::store {

/// What went wrong inside the gate. Whose files are to blame is told with the name of a user, for which a
/// directory service may take seconds: it is asked when the gate has been left.
struct Fault {
  Fault(Error what) : error(std::move(what)) {}  // NOLINT(google-explicit-constructor): most have no remedy
  Fault(Error what, std::function<std::string()> then) : error(std::move(what)), remedy(std::move(then)) {}

  Error error;
  std::function<std::string()> remedy;  ///< more for the user; empty: nothing
};

/// Of a step inside the gate.
template <class T>
using Step = std::expected<T, Fault>;

/// The same fault, with what was being done when it happened put in front.
inline Fault context(Fault fault, std::string_view doing) {
  fault.error = context(std::move(fault.error), doing);
  return fault;
}

/// All that there is to say. REQUIRES: the gate has been left.
inline Error told(const Fault& fault) {
  Error error = fault.error;
  if (fault.remedy) error.message += "; " + fault.remedy();
  return error;
}

}  // namespace berth::store
