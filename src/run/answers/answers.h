#pragma once

#include <string>
#include <vector>

#include "berth/lease/look.h"
#include "berth/lease/session.h"
#include "berth/machines/host.h"
#include "berth/view/refusal.h"
#include "berth/view/text.h"

namespace berth::answers {

/// The style of texts that the host program gets: of any width, without colours.
view::Style plain_style();

/// The verdicts of `judge` on the devices of this snapshot, each with its reason in words.
std::vector<Verdict> with_reasons(std::vector<Verdict> verdicts, const Snapshot& snapshot,
                                  const view::Style& style);

/// What was found, for the words about it. It must outlive them.
view::Why facts_of(const leasing::Explained& found);

/// The Error of a request that is not granted: for each device the condition that failed, with
/// numbers.
Error in_words(const leasing::ExplainedRefusal& refusal, const view::Style& style);

/// The warnings of the session's place, then these notes on an answer.
std::vector<std::string> all_notes(const leasing::Session& session, std::vector<std::string> notes);

/// The world as one machine among others is told of: its lists bounded, each waiting request with
/// its reason in words.
Result<HostReport> host_report(leasing::World world, const IdleTimes& idle, const view::Style& style);

}  // namespace berth::answers
