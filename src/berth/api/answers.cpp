#include "berth/api/answers.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "berth/core/printable.h"
#include "berth/core/units.h"
#include "berth/render/explain.h"
#include "berth/sys/clock.h"

namespace berth::api {

render::Style plain_style() {
  render::Style style;
  style.width = render::kUnlimited;
  style.now_s = std::time(nullptr);
  style.utc_offset_s = sys::utc_offset_s;
  return style;
}

std::vector<Finding> with_devices(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  const auto devices = render::devices_of(verdicts, snapshot);
  std::vector<Finding> found;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (devices[i] != nullptr) found.push_back({*devices[i], verdicts[i]});
  }
  return found;
}

std::vector<Verdict> with_reasons(std::vector<Verdict> verdicts, const Snapshot& snapshot,
                                  const render::Style& style) {
  const auto devices = render::devices_of(verdicts, snapshot);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (devices[i] != nullptr && !verdicts[i].free())
      verdicts[i].reason = render::sentence(verdicts[i], *devices[i], style);
  }
  return verdicts;
}

std::vector<Finding> findings(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  return with_devices(with_reasons(verdicts, snapshot, plain_style()), snapshot);
}

std::vector<Device> devices_among(const std::vector<std::string>& uuids, const Snapshot& snapshot) {
  std::vector<Device> found;
  for (const std::string& uuid : uuids) {
    if (const Device* device = find_device(snapshot, uuid)) found.push_back(*device);
  }
  return found;
}

Error in_words(const leasing::Refusal& refusal, const render::Style& style) {
  std::string text =
      render::refusal({refusal.request, refusal.world.facts.snapshot, refusal.verdicts, refusal.possible,
                       refusal.looser, refusal.standing ? &*refusal.standing : nullptr},
                      style);
  while (text.ends_with('\n')) text.pop_back();
  if (refusal.code == ErrorCode::timed_out)
    text = fmt::format("gave up after {}; {}", duration_for_people(*refusal.waited), text);
  return {refusal.code, std::move(text)};
}

std::vector<std::string> all_notes(const leasing::Session& session, std::vector<std::string> notes) {
  notes.insert(notes.begin(), session.warnings().begin(), session.warnings().end());
  std::ranges::transform(notes, notes.begin(), [](const std::string& note) { return printable(note); });
  return notes;
}

}  // namespace berth::api
