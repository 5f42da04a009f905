#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/request.h"
#include "berth/core/standing.h"
#include "berth/core/verdict.h"
#include "berth/render/text.h"

namespace berth::render {

/// What people recognise of a command line: "train.py" for "/usr/bin/python3 -u /home/a/train.py --epochs 3".
std::string short_command(std::string_view command);

/// The same for a table, after the note that its owner gave it: "\"paper\" train.py --epochs 3".
std::string noted_command(const Ticket& ticket);

/// "0-3,7,4:0": labels of devices, with what follows one another in one.
std::string label_list(const std::vector<std::string>& labels);

/// Why a device is not to be had, or that it is: "leased by alice, train.py, since 14:02 (2 h)".
std::string sentence(const Verdict& verdict, const Device& device, const Style& style);

/// The same in a few columns, for a table: "leased alice 2 h".
struct ShortState {
  std::string text;
  Tone tone = Tone::plain;
};
ShortState short_state(const Verdict& verdict, const Device& device, const Style& style);

/// The devices that the verdicts are on: both are in the same order. Not by UUID alone, which a device that
/// does not answer may lack.
std::vector<const Device*> devices_of(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The verdict on this device of the snapshot; null: none, it is split into instances.
const Verdict* verdict_on(const Device& device, const std::vector<Verdict>& verdicts,
                          const Snapshot& snapshot);

/// "GPU 3  leased by alice …", a line a device, wrapped to the style's width.
std::string verdict_lines(const std::vector<Verdict>& verdicts, const Snapshot& snapshot, const Style& style);

/// The request in words: "2 whole GPUs, name~A100".
std::string request_in_words(const Request& request);

/// What is to be said about a request on this machine at this moment.
struct Why {
  const Request& request;
  const Snapshot& snapshot;
  const std::vector<Verdict>& verdicts;
  std::size_t possible = 0;            ///< devices that could ever serve it
  std::vector<std::string> looser;     ///< requests that would succeed now, in words
  const Standing* standing = nullptr;  ///< behind somebody in line, or as it would be
};

/// The answer of `why`: a line a device, then the outcome.
std::string explanation(const Why& why, const Style& style);

/// What happened and how to go on when too few devices are free: for the error stream of `pick` and `run`.
std::string refusal(const Why& why, const Style& style);

/// Words of `text` broken into lines of `width` columns. All lines begin at column `indent`: what stands
/// there in the first one is the caller's.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace berth::render
