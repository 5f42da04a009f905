#pragma once

#include <string>
#include <vector>

#include "berth/api/berth.h"
#include "berth/lease/session.h"
#include "berth/render/text.h"

namespace berth::api {

/// The style of texts that the host program gets: of any width, without colours.
render::Style plain_style();

/// The verdicts of `judge` on the devices of this snapshot, each with its reason in words.
std::vector<Verdict> with_reasons(std::vector<Verdict> verdicts, const Snapshot& snapshot,
                                  const render::Style& style);

/// What was found about each device of the snapshot, with the reasons in words. `verdicts`: as `judge` gives
/// them.
std::vector<Finding> findings(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The same for verdicts whose reasons are in words already.
std::vector<Finding> with_devices(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The devices with these UUIDs, in their order.
std::vector<Device> devices_among(const std::vector<std::string>& uuids, const Snapshot& snapshot);

/// The Error of a request that is not granted: for each device the condition that failed, with numbers.
Error in_words(const leasing::Refusal& refusal, const render::Style& style);

/// The warnings of the session's place, then these notes on an answer.
std::vector<std::string> all_notes(const leasing::Session& session, std::vector<std::string> notes);

}  // namespace berth::api
