#pragma once

#include <expected>
#include <functional>
#include <string>
#include <utility>

#include "berth/base/error.h"

namespace berth::store {

/// An error inside the gate. The message may name the user whose files caused it, and a directory
/// service may take seconds for a name. So the name is looked up after the gate has been left.
struct Fault {
  Fault(Error what) : error(std::move(what)) {}  // NOLINT(google-explicit-constructor): most have no remedy
  Fault(Error what, std::function<std::string()> then) : error(std::move(what)), remedy(std::move(then)) {}

  Error error;
  std::function<std::string()> remedy;  ///< more for the user; empty, or "": nothing
};

/// The result of a step inside the gate.
template <class T>
using FaultOr = std::expected<T, Fault>;

/// The same fault, whose message begins with what was being done when it happened.
inline Fault context(Fault fault, std::string_view doing) {
  fault.error = context(std::move(fault.error), doing);
  return fault;
}

/// The whole error, with the remedy. REQUIRES: the gate has been left.
inline Error told(const Fault& fault) {
  Error error = fault.error;
  const std::string more = fault.remedy ? fault.remedy() : "";
  if (!more.empty()) error.message += "; " + more;
  return error;
}

}  // namespace berth::store
