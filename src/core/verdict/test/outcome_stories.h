#pragma once

#include "berth/verdict/ledger.h"
#include "berth/verdict/test/machine.h"

/// What became of runs, told as stories.
namespace berth::test {

inline constexpr Moment kS = 1000;
inline constexpr std::uint32_t kAlice = 1001;
inline constexpr std::uint32_t kBob = 1002;
inline constexpr std::uint32_t kCarol = 1003;

/// One line of a story: when and where a program began, how long it took, and how it ended.
struct Told {
  Moment at_s;
  unsigned gpu;
  const char* program;
  Moment lasted_s;
  Ending ending;
};
inline constexpr Ending kBadly = Ending::badly;
inline constexpr Ending kWell = Ending::well;
inline constexpr Ending kByOthers = Ending::by_others;
inline constexpr Ending kIncluded = Ending::included;
inline constexpr Ending kNoCuda = Ending::no_cuda;
/// Instead of a length: it still lives.
inline constexpr Moment kLives = -1;

inline PastRun outcome_of(const Told& told, std::uint32_t uid = kAlice) {
  return {fingerprint_of(uid, told.program),
          told.at_s * kS,
          told.lasted_s * kS,
          told.ending,
          {uuid_of(told.gpu)}};
}

inline Ticket lease_of(const Told& told, std::uint32_t uid = kAlice) {
  Ticket ticket;
  ticket.id = TicketId{static_cast<std::uint64_t>(told.at_s) + 1};
  ticket.phase = TicketPhase::granted;
  ticket.uid = uid;
  ticket.command = told.program;
  ticket.granted_boot_s = told.at_s;
  ticket.granted_boot_ms = 0;
  ticket.devices = {uuid_of(told.gpu)};
  return ticket;
}

}  // namespace berth::test
