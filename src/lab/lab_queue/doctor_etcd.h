#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/lab_queue/etcd_access.h"
#include "berth/view/doctor.h"

namespace berth::lab_queue {

/// Asks each member of the store for its version and a key, and tries as the user of `access` what
/// an agent does. Changes nothing. For a program that waits for it; no question takes more than a
/// few seconds.
std::vector<view::Finding> look_at_store(const EtcdAccess& access);

/// Why the lab queue may not be in this version of etcd: "etcd 3.3.25 is older than 3.4". "": it
/// may.
std::string version_fault(std::string_view version);

}  // namespace berth::lab_queue
