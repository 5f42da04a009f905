#include "berth/source/joined.h"

#include <algorithm>

namespace berth::source {
namespace {

/// Between devices of two vendors nothing is known but that both are in one
/// machine.
Topology side_by_side(const Topology& a, const Topology& b) {
  Topology both{a.uuids, {}};
  both.uuids.insert(both.uuids.end(), b.uuids.begin(), b.uuids.end());
  const std::size_t first = a.uuids.size(), count = both.uuids.size();
  both.links.resize(count * count);
  for (std::size_t i = 0; i < first; ++i)
    for (std::size_t j = 0; j < first; ++j) both.links[i * count + j] = a.links[i * first + j];
  for (std::size_t i = first; i < count; ++i)
    for (std::size_t j = first; j < count; ++j)
      both.links[i * count + j] = b.links[(i - first) * b.uuids.size() + (j - first)];
  return both;
}

}  // namespace

void Joined::head(const Snapshot& head) {
  // The first that has a device speaks for all.
  if (!sent_) head_ = head;
}

void Joined::send_head() {
  if (sent_ || !head_) return;
  sink_.head(*head_);
  sent_ = true;
}

void Joined::begin(const Stage& stage) {
  send_head();
  Stage here = stage;
  here.index += before_;
  here.count += before_;
  sink_.begin(here);
}

void Joined::device(const Device& device) {
  send_head();
  Device here = device;
  here.index += before_;
  count_ = std::max(count_, here.index + 1);
  sink_.device(here);
}

void Joined::topology(const Topology& topology) {
  topology_ = topology_ ? side_by_side(*topology_, topology) : topology;
}

void Joined::note(std::string_view note) {
  send_head();
  if (sent_) sink_.note(note);
}

void Joined::next() {
  before_ = count_;
}

bool Joined::finish() {
  send_head();
  if (sent_ && topology_) sink_.topology(*topology_);
  return sent_;
}

}  // namespace berth::source
