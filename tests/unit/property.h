#pragma once

#include <functional>
#include <string>

namespace berth {

/// Fails the test unless this holds for each of the histories that RapidCheck makes up: the body
/// draws from `rc::gen` and asserts by `RC_ASSERT`. Compiled once for all tests: `rc::check`
/// compiles a hundred functions for each body that it is given, and says what it found in a value
/// that a test can forget to look at.
void holds_for_any(const std::function<void()>& body);
void holds_for_any(const std::string& what, const std::function<void()>& body);

}  // namespace berth
