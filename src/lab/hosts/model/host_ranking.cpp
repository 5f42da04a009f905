#include "berth/hosts/model/host_ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "berth/base/printable.h"
#include "berth/base/units.h"

namespace berth {
namespace {

constexpr std::int64_t kNobodyKnows = std::numeric_limits<std::int64_t>::max();

bool can_ever_serve(const Request& request, const Offer& offer) {
  return offer.possible >= request.count;
}

bool starts_at_once(const Request& request, const Offer& offer) {
  return offer.at_once && offer.free >= request.count;
}

bool is_away(const Offer& offer) {
  return offer.near == false;
}

// Smaller is better. It depends on one host's words alone, so a host that lies moves only itself.
auto key_of(const Request& request, const HostAnswer& answer) {
  enum Rank { kAtOnce, kLater, kNever, kSilent };
  const auto key = [](Rank rank, bool away, std::size_t free, std::int64_t wait, std::size_t ahead) {
    return std::tuple(std::max(rank, kLater), away, rank, free, wait, ahead);
  };
  if (!answer.offer) return key(kSilent, false, 0, 0, 0);
  const Offer& offer = *answer.offer;
  if (!can_ever_serve(request, offer)) return key(kNever, false, 0, 0, 0);
  if (starts_at_once(request, offer)) return key(kAtOnce, is_away(offer), offer.free, 0, 0);
  const std::int64_t wait = std::max<std::int64_t>(0, offer.starts_in_s.value_or(kNobodyKnows));
  return key(kLater, is_away(offer), 0, wait, offer.ahead);
}

std::string standing_in_words(const Request& request, const Offer& offer) {
  const std::string stands = offer.reason.empty() ? "" : fmt::format(" ({})", printable(offer.reason));
  if (!can_ever_serve(request, offer))
    return fmt::format("it can never serve this request: {} of the {} GPUs asked for could{}", offer.possible,
                       request.count, stands);
  if (starts_at_once(request, offer))
    return fmt::format("the command would start now ({} of {} free)", offer.free, offer.possible);
  const std::string line = offer.ahead == 0 ? "first in line" : fmt::format("{} before it", offer.ahead);
  if (!offer.starts_in_s) return fmt::format("{}, start not known{}", line, stands);
  return fmt::format("{}, starts in about {} at the latest{}", line,
                     duration_for_people(std::max<std::int64_t>(0, *offer.starts_in_s)), stands);
}

std::string in_words(const Request& request, const HostAnswer& answer) {
  if (!answer.offer) return answer.offer.error().message;
  const std::string text = standing_in_words(request, *answer.offer);
  if (!answer.offer->near) return text;
  return fmt::format("{}; the path of --near is {}there", text, *answer.offer->near ? "" : "not ");
}

}  // namespace

std::vector<RankedHost> rank_hosts(const Request& request, const std::vector<HostAnswer>& answers) {
  std::vector<RankedHost> ranked;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& offer = answers[i].offer;
    ranked.push_back({.host = i,
                      .can_serve = offer && can_ever_serve(request, *offer),
                      .reason = in_words(request, answers[i])});
  }
  const auto has_path = [&](const RankedHost& each) {
    return each.can_serve && answers[each.host].offer->near == true;
  };
  if (std::ranges::any_of(ranked, has_path)) {
    for (RankedHost& each : ranked) each.in_reserve = each.can_serve && is_away(*answers[each.host].offer);
  }
  std::ranges::stable_sort(ranked, [&](const RankedHost& a, const RankedHost& b) {
    return key_of(request, answers[a.host]) < key_of(request, answers[b.host]);
  });
  return ranked;
}

}  // namespace berth
