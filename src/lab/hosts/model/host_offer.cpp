#include "berth/hosts/model/host_offer.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "berth/base/error.h"
#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/view/json.h"
#include "berth/view/text.h"

namespace berth {

Result<void> check_host_version(std::string_view version_there) {
  if (version_there == version()) return {};
  return fail(ErrorCode::failure,
              "its Berth is version {}, and this one is {}. Install the same version on both",
              printable(version_there), version());
}

std::chrono::seconds patience_with(bool has_greeted) {
  return has_greeted ? kPatienceForAnswer : kPatienceForHello;
}

Error why_silent(std::string_view host, bool has_greeted) {
  const auto seconds = patience_with(has_greeted).count();
  if (has_greeted)
    return {
        ErrorCode::failure,
        fmt::format("its Berth has not answered for {} s. Look there: ssh {} berth doctor", seconds, host)};
  return {ErrorCode::failure, fmt::format("ssh has had no answer for {} s. Try: ssh {} true", seconds, host)};
}

namespace {

// nullopt: nobody can say.
std::optional<std::int64_t> end_of_leases_on(const std::string& uuid, const Ledger& ledger,
                                             const Facts& facts) {
  std::optional<std::int64_t> end;
  for (const Ticket* lease : leases_on(ledger, uuid)) {
    const auto said = said_end_at_s(*lease, facts.booted_at_s);
    if (!said) return std::nullopt;
    end = std::max(end.value_or(*said), *said);
  }
  return end;
}

}  // namespace

std::optional<std::int64_t> seconds_until_enough(unsigned count, const std::vector<Verdict>& verdicts,
                                                 const Ledger& ledger, const Facts& facts,
                                                 std::int64_t now_s) {
  std::vector<std::int64_t> ready;
  for (const Verdict& verdict : verdicts) {
    if (verdict.free()) {
      ready.push_back(now_s);
    } else if (verdict.failed == Clause::not_leased) {
      if (const auto end = end_of_leases_on(verdict.uuid, ledger, facts))
        ready.push_back(std::max(*end, now_s));
    }
  }
  if (ready.size() < count || count == 0) return std::nullopt;
  std::ranges::sort(ready);
  return ready[count - 1] - now_s;
}

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
  const std::string position = offer.ahead == 0 ? "first in line" : fmt::format("{} before it", offer.ahead);
  if (!offer.starts_in_s) return fmt::format("{}, start not known{}", position, stands);
  return fmt::format("{}, starts in about {} at the latest{}", position,
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

namespace berth::view {
namespace {

std::string_view standing_of(const RankedHost& host, std::size_t rank, std::size_t queues) {
  if (!host.can_serve) return "left out";
  return rank < queues && !host.in_reserve ? "in line" : "reserve";
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
                         std::size_t queues, const Style& style) {
  std::size_t name_width = 0;
  for (const HostAnswer& each : answers)
    name_width = std::max(name_width, display_width(printable(each.host)));
  std::string text;
  std::size_t rank = 0;
  for (const RankedHost& each : ranked) {
    const bool joins = each.can_serve && !each.in_reserve && rank < queues;
    const std::string chosen = fmt::format("{:<9}", standing_of(each, rank++, queues));
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
                     counted(std::min(able, queues), "line"));
}

std::string why_of_hosts_json(const Request& request, const std::vector<RankedHost>& ranked,
                              const std::vector<HostAnswer>& answers, std::size_t queues) {
  Json json = {{"kind", "berth-why-hosts"}, {"version", 1}};
  json["request"] = request_json(request);
  json["lines"] = queues;
  json["hosts"] = Json::array();
  for (std::size_t rank = 0; rank < ranked.size(); ++rank) {
    const RankedHost& each = ranked[rank];
    const HostAnswer& answer = answers[each.host];
    json["hosts"].push_back({{"host", answer.host},
                             {"standing", standing_of(each, rank, queues)},
                             {"reason", each.reason},
                             {"answers", answer.offer.has_value()},
                             {"offer", offer_json(answer.offer)}});
  }
  return dumped(std::move(json), Layout::lines);
}

}  // namespace berth::view
