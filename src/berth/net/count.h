#pragma once

#include <cstddef>

namespace berth::serve {

/// One more, as long as this is there.
class Count {
 public:
  explicit Count(std::size_t& counter) : counter_(counter) { ++counter_; }
  ~Count() { --counter_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  std::size_t& counter_;
};

}  // namespace berth::serve
