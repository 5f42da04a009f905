#include "berth/hosts/model/offers.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/text_match.h"
#include "berth/view/json_parts.h"
#include "berth/view/text.h"

namespace berth::view {
namespace {

std::string_view standing_of(const RankedHost& host, std::size_t place, std::size_t lines) {
  if (!host.can_serve) return "left out";
  return place < lines && !host.in_reserve ? "in line" : "reserve";
}

Json offer_json(const Result<Offer>& offer) {
  if (!offer) return nullptr;
  return {{"possible", offer->possible},
          {"free", offer->free},
          {"at_once", offer->at_once},
          {"ahead", offer->ahead},
          {"starts_in_s", nullable(offer->starts_in_s)},
          {"near", nullable(offer->near)}};
}

}  // namespace

std::string why_of_hosts(const std::vector<RankedHost>& ranked, const std::vector<HostAnswer>& answers,
                         std::size_t lines, const Style& style) {
  std::size_t name_width = 0;
  for (const HostAnswer& each : answers)
    name_width = std::max(name_width, display_width(printable(each.host)));
  std::string text;
  std::size_t place = 0;
  for (const RankedHost& each : ranked) {
    const bool joins = each.can_serve && !each.in_reserve && place < lines;
    const std::string chosen = fmt::format("{:<9}", standing_of(each, place++, lines));
    const std::string name = printable(answers[each.host].host);
    const std::string head = name + std::string(name_width - display_width(name) + 2, ' ') + chosen;
    text += toned(head,
                  joins            ? Tone::good
                  : each.can_serve ? Tone::plain
                                   : Tone::bad,
                  style) +
            wrapped(printable(each.reason), style.width, name_width + 2 + chosen.size()) + "\n";
  }
  const auto able = static_cast<std::size_t>(std::ranges::count_if(
      ranked, [](const RankedHost& each) { return each.can_serve && !each.in_reserve; }));
  if (able == 0) return text + "\nno host can serve this request\n";
  return text +
         fmt::format("\n`berth run --anywhere` would stand in {} at once; the first to grant it starts\n",
                     counted(std::min(able, lines), "line"));
}

std::string why_of_hosts_json(const Request& request, const std::vector<RankedHost>& ranked,
                              const std::vector<HostAnswer>& answers, std::size_t lines) {
  Json json = {{"kind", "berth-why-hosts"}, {"version", 1}};
  json["request"] = request_json(request);
  json["lines"] = lines;
  json["hosts"] = Json::array();
  for (std::size_t place = 0; place < ranked.size(); ++place) {
    const RankedHost& each = ranked[place];
    const HostAnswer& answer = answers[each.host];
    json["hosts"].push_back({{"host", answer.host},
                             {"standing", standing_of(each, place, lines)},
                             {"reason", each.reason},
                             {"answers", answer.offer.has_value()},
                             {"offer", offer_json(answer.offer)}});
  }
  return dumped(std::move(json), Layout::lines);
}

}  // namespace berth::view
