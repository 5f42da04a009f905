#pragma once

#include <vector>

#include "berth/source/source.h"

namespace berth::source {

/// Keeps what it is given.
struct Collected : Sink {
  void head(const Snapshot& head) override { snapshot = head, ++heads; }
  void begin(const Stage& stage) override { stages.push_back(stage); }
  void device(const Device& device) override { snapshot.devices.push_back(device); }
  void user(std::uint32_t, std::string_view) override {}
  void topology(const Topology& topology) override { snapshot.topology = topology; }
  void note(std::string_view note) override { snapshot.notes.emplace_back(note); }

  Snapshot snapshot;
  std::vector<Stage> stages;
  int heads = 0;
};

}  // namespace berth::source
