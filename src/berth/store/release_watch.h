#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "berth/sys/descriptor.h"

namespace berth::store {

/// Wakes when one of a set of files was closed by somebody who could write to it, or lost its name: how the
/// end of a device lock and of a ticket shows. Where the kernel grants no more inotify instances, it wakes
/// with each tick only.
class ReleaseWatch {
 public:
  ReleaseWatch();

  /// True: this file was not watched before, so whatever happened to it earlier went unseen.
  bool add(int directory, const std::string& name);

  /// Readable: something was closed. -1: the kernel grants no more instances.
  int descriptor() const { return inotify_.get(); }

  /// True: something was closed since the last call that gave true, or one of `exits` is readable; false: the
  /// tick is over.
  bool wait(const std::vector<int>& exits, std::chrono::milliseconds tick);

 private:
  sys::Descriptor inotify_;
  std::set<int> watched_;
};

}  // namespace berth::store
