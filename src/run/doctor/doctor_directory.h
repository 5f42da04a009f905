#pragma once

#include <string>
#include <vector>

#include "berth/device/device.h"
#include "berth/store/lease_directory.h"
#include "berth/view/doctor.h"

namespace berth::doctor {

using view::Finding;

/// Whether the lease directory is as it should be: it can be used, nobody can remove others'
/// tickets, it is not full, every file in it is understood, and all users of this machine use the
/// same directory. `uuids`: of the devices of this machine, as far as they are known. Changes
/// nothing.
std::vector<Finding> examine_lease_directory(const store::DirectoryChoice& choice,
                                             const std::vector<std::string>& uuids);

/// Those of these findings that keep a process from seeing everybody's leases there.
std::vector<Finding> examine_view(const store::DirectoryChoice& choice);

/// What a process here cannot see of this machine: leases that others make elsewhere, and the
/// processes of other users. A program that shows the machine to others must say so. One sentence
/// each, with what to do. Changes nothing.
std::vector<std::string> blind_spots(const store::DirectoryChoice& choice);

/// Whether the site files are understood, what they say, and what in them means nothing here:
/// users, groups and devices that there are not; and the order of the queue that holds here.
/// `snapshot`: null if the devices cannot be read.
std::vector<view::Finding> examine_site_files(const Snapshot* snapshot, const std::string& lease_directory);

}  // namespace berth::doctor
