#pragma once

#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/lab_queue/store_health.h"
#include "berth/lab_queue/store_place.h"

namespace berth::lab_queue {

/// Asks each member of the store what it says of itself, and tries as the user of `place` what an agent
/// does. Changes nothing. For a program that waits for it; no question takes more than a few seconds.
StoreSeen look_at_store(const StorePlace& place);

/// Makes the user of `place` in etcd, and the role that lets it read and write the line and nothing else. A
/// password file that is not there is written, with a new password. `root_password_file`: of etcd's root,
/// also one to be written; then etcd asks everybody for a password from now on. "": root is not needed, or
/// not known. What is there already stays. Tells what was done. Error: `failure` or `usage`, with what to do;
/// what was done before it stays, and another call goes on there.
Result<std::vector<view::Finding>> make_store_users(const StorePlace& place,
                                                    const std::string& root_password_file);

}  // namespace berth::lab_queue
