#pragma once

#include <string>
#include <string_view>

#include "berth/cli/question.h"
#include "berth/core/select.h"

namespace berth::cli {

/// The devices that the request gets at this moment. Error: `usage`; `impossible` or `not_now`, with the
/// reason of every device in its message. Reads the topology into the world if the choice depends on it.
Result<Choice> choose_from(Environment& environment, leasing::World& world, const RequestOptions& options);

/// Requests that differ in one point and would succeed now, in words.
std::vector<std::string> looser_requests(const Request& request, const leasing::World& world);

/// The Error of a request that cannot be met: `impossible` or `not_now`, in words for the error stream.
Error refused(const Request& request, const std::vector<Verdict>& verdicts, const Facts& facts,
              std::vector<std::string> looser = {});

/// The value for CUDA_VISIBLE_DEVICES: indices in PCI bus order, or UUIDs when asked for and where an index
/// would name another device to CUDA, or none.
std::string visible_devices(const Choice& choice, const Snapshot& snapshot, bool uuids);

/// Whether that value has indices in it.
bool counts_by_index(const Choice& choice, const Snapshot& snapshot, bool uuids);

}  // namespace berth::cli
