#pragma once

#include <optional>
#include <string>

#include "berth/source/reader.h"

namespace berth::source {

/// Makes one snapshot of those of several readers, one after another: the
/// devices of the second are counted on from those of the first, and no reader
/// knows of another. Passes everything on as it comes.
class Joined : public Sink {
 public:
  explicit Joined(Sink& sink) : sink_(sink) {}

  void head(const Snapshot& head) override;
  void begin(const Stage& stage) override;
  void device(const Device& device) override;
  void user(std::uint32_t uid, std::string_view name) override { sink_.user(uid, name); }
  void topology(const Topology& topology) override;
  void note(std::string_view note) override;

  /// A reader has ended; the next begins, if there is one.
  void next();
  /// All readers have ended. False: none gave even a head, and nothing was
  /// passed on.
  bool finish();

 private:
  void send_head();

  Sink& sink_;
  std::optional<Snapshot> head_;  ///< until there is a device to go with it, or a note
  bool sent_ = false;
  unsigned before_ = 0;  ///< GPUs of the readers before
  unsigned count_ = 0;   ///< GPUs so far
  std::optional<Topology> topology_;
};

}  // namespace berth::source
