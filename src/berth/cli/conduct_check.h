#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/ledger.h"
#include "berth/source/source.h"
#include "berth/sys/child.h"
#include "berth/sys/descriptor.h"

namespace berth::cli {

/// When `run` looks whether its command keeps to its lease: BERTH_VERIFY, else after a minute. nullopt:
/// never. Error: `usage`.
Result<std::optional<std::chrono::seconds>> time_of_first_look();

/// Looks twice, while a command runs, whether it computes on the devices that were leased for it, and says
/// once that it does not. A look is a process of its own, which is never waited for: the driver may hang.
class ConductCheck {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `first` after now, and after ten times as long; nullopt: never. `expects_use`: that nothing computes on
  /// any device is worth a word, too.
  ConductCheck(TicketId lease, source::SourceKind source, std::optional<std::chrono::seconds> first,
               bool expects_use);
  ConductCheck(const ConductCheck&) = delete;
  ConductCheck& operator=(const ConductCheck&) = delete;

  /// When there is something to do at the latest; nullopt: never again.
  std::optional<Time> next() const;
  /// Begins a look that is due, or hears what one has found. Never waits. The sentence for the user, if there
  /// is one to be said.
  std::optional<std::string> go_on();
  /// Ends a look under way.
  void end();
  /// Processes of a look that was ended, which may take their time: they are none of the command's.
  const std::vector<pid_t>& ended() const { return ended_; }

 private:
  void begin();
  std::optional<std::string> judged(std::string_view answer);

  TicketId lease_;
  source::SourceKind source_;
  std::chrono::seconds first_;
  bool expects_use_;
  std::vector<Time> due_;  ///< of the looks still to come, the next one last
  std::optional<sys::Child> look_;
  sys::Descriptor answer_;
  std::vector<pid_t> ended_;
};

}  // namespace berth::cli
