#pragma once

#include <optional>
#include <string>

#include "berth/source/reader.h"

namespace berth::source {

/// Makes one snapshot of the snapshots of several readers, one after another. The devices of the
/// second reader are numbered on from those of the first, and no reader knows of another. Passes
/// everything on as it comes.
class Joined : public Sink {
 public:
  explicit Joined(Sink& sink) : sink_(sink) {}

  void head(const Snapshot& head) override;
  void begin(const Stage& stage) override;
  void device(const Device& device) override;
  void user(std::uint32_t uid, std::string_view name) override { sink_.user(uid, name); }
  void topology(const Topology& topology) override;
  void note(std::string_view note) override;

  /// To be called when a reader has ended; the next one begins, if there is one.
  void next();
  /// To be called when all readers have ended. False: no reader gave a head, and nothing was passed
  /// on.
  bool finish();

 private:
  void send_head();

  Sink& sink_;
  std::optional<Snapshot> head_;  ///< kept until a device or a note comes
  bool sent_ = false;
  unsigned before_ = 0;  ///< how many GPUs the readers before had
  unsigned count_ = 0;   ///< how many GPUs there are so far
  std::optional<Topology> topology_;
};

}  // namespace berth::source
