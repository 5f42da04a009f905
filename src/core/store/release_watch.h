#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "berth/sys/descriptor.h"

namespace berth::store {

/// Wakes when a process that could write to one of the files has closed it, or when one of the
/// files lost its name. So it notices the end of a device lock and of a ticket. If the kernel
/// grants no more inotify instances, it wakes only with each tick.
class ReleaseWatch {
 public:
  ReleaseWatch();

  /// True: this file was not watched before, so earlier events of it were not seen.
  bool add(int directory, const std::string& name);

  /// Readable if something was closed. -1: the kernel grants no more instances.
  int descriptor() const { return inotify_.get(); }

  /// True: something was closed since the last call that gave true, or one of `exits` is readable;
  /// false: the tick is over.
  bool wait(const std::vector<int>& exits, std::chrono::milliseconds tick);

 private:
  sys::Descriptor inotify_;
  std::set<int> watched_;
};

}  // namespace berth::store
