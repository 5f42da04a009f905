#pragma once

#include <map>
#include <memory>
#include <string>

#include "berth/agent/answer.h"

namespace berth::serve {

/// The compressed form of what many clients get, made for the first that takes it and kept as long as the
/// text is.
class Packer {
 public:
  /// nullptr: it is too short to be worth it.
  SharedText packed(const SharedText& text);
  void forget_what_is_gone();

 private:
  std::map<std::weak_ptr<const std::string>, SharedText, std::owner_less<>> packed_;
};

}  // namespace berth::serve
