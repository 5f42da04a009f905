#include "past_of_timeline.h"

#include <cstdlib>
#include <utility>

#include "berth/timeline/model/timeline.h"
#include "berth/view/past_leases.h"

namespace berth::serve {
namespace {

// Of steps of five minutes: what is older than this by less is hardly seen.
constexpr std::int64_t kRenewEvery = 30;

}  // namespace

void PastOfTimeline::renew(history::History& history, std::int64_t now_s) {
  // Also after the clock was set.
  if (std::abs(now_s - asked_s_) < kRenewEvery) return;
  asked_s_ = now_s;
  history.ask(LeasesQuestion{.since_s = TimelineSpan().back_s, .points = kTimelinePoints},
              [self = shared_from_this()](const history::HistoryAnswer& answer) {
                std::shared_ptr<const RecordedLeases> told;
                if (answer.http_status == 200) {
                  if (auto read = view::recorded_leases_from_json(answer.json))
                    told = std::make_shared<const RecordedLeases>(*std::move(read));
                }
                const std::scoped_lock lock(self->mutex_);
                self->told_ = std::move(told);
              });
}

std::shared_ptr<const RecordedLeases> PastOfTimeline::told() const {
  const std::scoped_lock lock(mutex_);
  return told_;
}

}  // namespace berth::serve
