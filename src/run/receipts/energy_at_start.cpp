// In a thread, because a driver that hangs would else keep the command from its signals.
#include "berth/receipts/energy_at_start.h"

#include <utility>

#include "berth/command/environment.h"
#include "berth/source/probe_source.h"

namespace berth::receipts {
namespace {

using namespace std::chrono_literals;

constexpr auto kAsksAfter = 100ms;
// A driver that has not answered in the ten seconds before does not answer.
constexpr auto kPatience = 100ms;

}  // namespace

EnergyAtStart::EnergyAtStart(std::vector<std::string> uuids, source::SourceKind source)
    : uuids_(std::move(uuids)), source_(source) {
  if (!uuids_.empty()) due_ = std::chrono::steady_clock::now() + kAsksAfter;
}

void EnergyAtStart::go_on() {
  if (!due_ || std::chrono::steady_clock::now() < *due_) return;
  due_.reset();
  told_ = sys::DetachedAnswer<std::optional<Snapshot>>(
      [uuids = std::move(uuids_), kind = source_,
       options = command::probe_options()]() -> std::optional<Snapshot> {
        auto source = source::ProbeSource::start(options);
        if (!source) return std::nullopt;
        source->set_kind(kind);
        auto snapshot = source->read_of(uuids, ReadingKind::energy);
        return snapshot ? std::optional(*std::move(snapshot)) : std::nullopt;
      });
}

std::optional<Snapshot> EnergyAtStart::told() {
  return told_.within(kPatience);
}

}  // namespace berth::receipts
