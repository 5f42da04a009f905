#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/timeline/model/timeline.h"
#include "berth/view/text.h"

// The timeline of a machine as words, as a picture of characters, and as a document.
namespace berth::timeline {

using view::Style;

/// The answers to the first questions, a sentence each: is one free, and when is the next; who
/// wastes one; where is the user who asks; what waits. `uid`: of that user; nullopt: nobody asks.
std::vector<std::string> answers(const Timeline& line, std::optional<std::uint32_t> uid, const Style& style);

/// A line of the picture.
struct PictureRow {
  std::string label;  ///< of the device that it is about; "": a line of hours or of the queue
  view::Row parts;    ///< at most style.width columns
  bool mine = false;
};
/// The hours, a line for each device, and one for each of the first requests that wait. A state has
/// a shape, whatever the colours are. `ascii`: with no other characters.
std::vector<PictureRow> picture(const Timeline& line, std::optional<std::uint32_t> uid, const Style& style,
                                bool ascii);
/// All of it, for a terminal or a pipe.
std::string text_of(const Timeline& line, std::optional<std::uint32_t> uid, const Style& style, bool ascii);

/// docs/schema/timeline.json.
std::string to_json(const Timeline& line, view::Layout layout);
/// Reads it back into values, without trusting its writer. Error: `failure`, with the value that is
/// not valid.
Result<Timeline> from_json(std::string_view text);

}  // namespace berth::timeline
