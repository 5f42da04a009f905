#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

// What an admin asks etcd for, and what it says of itself. Pure.
namespace berth::lab_queue {

/// One of those that etcd consists of.
struct StoreMember {
  std::string name;
  std::vector<std::string> urls;  ///< at which clients ask it
};

/// What a member tells under /metrics. 0: it does not tell.
struct StoreGauges {
  std::uint64_t bytes = 0;        ///< of its file
  std::uint64_t quota_bytes = 0;  ///< beyond which it takes nothing more
  std::uint64_t compacted = 0;    ///< the revision up to which it has forgotten what was before
};
StoreGauges read_store_gauges(std::string_view metrics);

// Error of each: `failure`, where it is no such answer; an error that etcd tells comes with its words.
Result<std::vector<StoreMember>> read_store_members(std::string_view json);
/// "NOSPACE", "CORRUPT".
Result<std::vector<std::string>> read_store_alarms(std::string_view json);
/// The number of the etcd that has answered, whatever it was asked. "": it has not said.
std::string store_cluster_of(std::string_view json);

/// Whether etcd says that the user has no right to do this.
bool denies_right(std::string_view json);

std::string store_compaction_json(std::uint64_t revision);
/// Why etcd has not forgotten what was before the revision. "": it has, or had before.
std::string forgetting_fault(std::string_view json);

}  // namespace berth::lab_queue
