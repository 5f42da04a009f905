#include "berth/render/offers.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/render/explain.h"

namespace berth::render {

std::string why_of_hosts(const std::vector<RankedHost>& ranked, const std::vector<HostAnswer>& answers,
                         std::size_t lines, const Style& style) {
  std::size_t name_width = 0;
  for (const HostAnswer& each : answers)
    name_width = std::max(name_width, display_width(printable(each.host)));
  std::string text;
  std::size_t place = 0;
  for (const RankedHost& each : ranked) {
    const bool joins = each.can_serve && place < lines;
    ++place;
    const std::string_view chosen = joins ? "in line  " : each.can_serve ? "reserve  " : "left out ";
    const std::string name = printable(answers[each.host].host);
    const std::string head =
        name + std::string(name_width - display_width(name) + 2, ' ') + std::string(chosen);
    text += toned(head,
                  joins            ? Tone::good
                  : each.can_serve ? Tone::plain
                                   : Tone::bad,
                  style) +
            wrapped(printable(each.reason), style.width, name_width + 2 + chosen.size()) + "\n";
  }
  const auto able = static_cast<std::size_t>(std::ranges::count_if(ranked, &RankedHost::can_serve));
  if (able == 0) return text + "\nno host can serve this request\n";
  return text +
         fmt::format("\n`berth run --anywhere` would stand in {} at once; the first to grant it starts\n",
                     counted(std::min(able, lines), "line"));
}

}  // namespace berth::render
