// In a thread, because a driver that hangs would else keep the command from its signals.
#include "berth/supervise/energy_at_start.h"

#include <memory>
#include <system_error>
#include <utility>

#include "berth/command/environment.h"
#include "berth/source/probe_source.h"
#include "berth/sys/detached_thread.h"

namespace berth::supervise {
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
  const auto promise = std::make_shared<std::promise<std::optional<Snapshot>>>();
  auto told = promise->get_future();
  const auto ask = [promise, uuids = std::move(uuids_), kind = source_, options = command::probe_options()] {
    std::optional<Snapshot> answer;
    if (auto source = source::ProbeSource::start(options)) {
      source->set_kind(kind);
      if (auto snapshot = source->read_of(uuids, ReadingKind::energy)) answer = *std::move(snapshot);
    }
    promise->set_value(std::move(answer));
  };
  try {
    sys::begin_detached(ask);
  } catch (const std::system_error&) {
    return;  // under a limit on processes
  }
  told_ = std::move(told);
}

std::optional<Snapshot> EnergyAtStart::told() {
  if (!told_.valid() || told_.wait_for(kPatience) != std::future_status::ready) return std::nullopt;
  return told_.get();
}

}  // namespace berth::supervise
