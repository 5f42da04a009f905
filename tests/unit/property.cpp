#include "property.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace berth {

void holds_for_any(const std::function<void()>& body) {
  CHECK(rc::check(body));
}

void holds_for_any(const std::string& what, const std::function<void()>& body) {
  CHECK(rc::check(what, body));
}

}  // namespace berth
