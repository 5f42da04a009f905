#include "berth/hosts/model/offer.h"

#include <algorithm>

namespace berth {
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

}  // namespace berth
