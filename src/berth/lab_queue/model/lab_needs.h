#pragma once

#include <string>
#include <variant>

#include "berth/lab_queue/model/lab_agent.h"
#include "berth/lab_queue/model/lab_copy.h"

// What a request needs, so that the store has it as it should be and the request knows: its entry,
// its one start, and the end of a start that it has lost.
namespace berth::lab_agent {

/// All is as it should be, or comes with a later round.
struct Nothing {};
/// The store is to be changed.
struct Writes {
  lab_queue::LabChange change;
  Settles::Purpose purpose{};
};
/// It is to be told that its command may start.
struct Yes {
  std::string host;
};
/// Its user has too much of the lab to start it now.
struct Over {
  std::string why;
};
/// Its connection is to end.
struct TurnedAway {
  std::string why;
  bool with_entry = false;  ///< with what the store has of it
};
using Need = std::variant<Nothing, Writes, Yes, Over, TurnedAway>;

/// REQUIRES: it has an entry.
Need need_of(Client& one, const Settings& settings, const Given& given);
/// After this was made for it.
Need need_after(QueueEntry& entry, const Settles::Purpose& made);

}  // namespace berth::lab_agent
