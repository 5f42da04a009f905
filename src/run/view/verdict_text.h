#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/verdict/verdict.h"
#include "berth/view/text.h"

namespace berth::view {

/// The part of a command line that people recognise: "train.py" for "/usr/bin/python3 -u
/// /home/a/train.py --epochs 3".
std::string short_command(std::string_view command);

/// The same for a table, after the note that its owner gave it: "\"paper\" train.py --epochs 3".
std::string noted_command(const Ticket& ticket);

/// "0-3,7,4:0": the labels of devices, with neighbours joined to a range.
std::string label_list(const std::vector<std::string>& labels);

/// Why a request cannot have the device, or that it can: "leased by alice, train.py, since 14:02 (2
/// h)".
std::string sentence(const Verdict& verdict, const Device& device, const Style& style);

/// The same in a few columns, for a table: "leased alice 2 h".
struct ShortState {
  std::string text;
  Tone tone = Tone::plain;
};
ShortState short_state(const Verdict& verdict, const Device& device, const Style& style);

/// The devices of these verdicts; both are in the same order. It does not go by UUID alone, because
/// a device that does not answer may have none.
std::vector<const Device*> devices_of(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The verdict on this device of the snapshot; null: it has none, because it is split into
/// instances.
const Verdict* verdict_on(const Device& device, const std::vector<Verdict>& verdicts,
                          const Snapshot& snapshot);

/// "GPU 3  leased by alice …": one line for each device, wrapped to the style's width.
std::string verdict_lines(const std::vector<Verdict>& verdicts, const Snapshot& snapshot, const Style& style);

}  // namespace berth::view
