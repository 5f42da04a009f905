#pragma once

#include <set>

#include "berth/source/proc/process_details.h"
#include "berth/source/proc/user_names.h"
#include "berth/source/reader.h"

namespace berth::source {

/// Tells who the processes of one snapshot are.
class ProcessDescriber {
 public:
  ProcessDescriber(UserNames& names, const std::string& proc = "/proc")
      : names_(names), proc_(proc), details_(proc) {}

  /// Everything but names that only the system's name service knows.
  void describe(Device& device);
  /// Asks the service for those, and notes what cannot be known from here. After all devices.
  void finish(Sink& sink);

 private:
  UserNames& names_;
  std::string proc_;
  ProcessDetails details_;
  std::set<std::uint32_t> unnamed_;
};

}  // namespace berth::source
