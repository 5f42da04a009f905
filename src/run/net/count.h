#pragma once

#include <cstddef>

namespace berth::net {

/// Adds one to a count, as long as this object lives.
class Count {
 public:
  explicit Count(std::size_t& counter) : counter_(counter) { ++counter_; }
  ~Count() { --counter_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  std::size_t& counter_;
};

}  // namespace berth::net
