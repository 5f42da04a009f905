#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "berth/lease/acquire.h"
#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/request/inherited_mask.h"
#include "berth/verdict/choice.h"
#include "berth/verdict/verdict.h"

namespace berth::leasing {

/// What was found for a request: all that is needed to say why it is granted or not.
struct Explained {
  Request request;
  World world;
  std::vector<Verdict> verdicts;       ///< of each device, in the order of the snapshot
  std::size_t possible = 0;            ///< devices that could ever serve the request
  std::vector<std::string> looser;     ///< requests that would succeed now, in words
  std::optional<std::string> never{};  ///< as why_never()
  /// How the request stands, or would stand, behind those that came earlier. nullopt: nobody is
  /// before it.
  std::optional<Standing> standing{};
  /// About when it would start if it were made now, as Standing::starts_at_s. nullopt: also if it
  /// could start at once, and after any other question than `why`.
  std::optional<std::int64_t> starts_at_s{};
};

/// The request is not granted.
struct Refusal : Explained {
  ErrorCode code = ErrorCode::not_now;              ///< `impossible`; `not_now`; `timed_out`
  std::optional<std::chrono::milliseconds> waited;  ///< how long it waited in vain
};

/// The devices that the request would get now, behind the requests that wait, in the order in which
/// the job shall see them.
struct Picked {
  World world;
  Choice choice;
};

/// What affects an answer but does not show in it, one sentence each: an old snapshot, a mask that
/// was cut off, notes on the choice, instances of which CUDA shows only one.
std::vector<std::string> notes_on(const Picked& picked);
std::vector<std::string> notes_on(const HeldLease& lease);
/// The same for a command that shows all that a look saw: also the tickets that cannot be
/// understood.
std::vector<std::string> notes_on(const World& world);

/// About when a request for one device that is made now would start, as Standing::starts_at_s.
/// nullopt: also if it could start at once. Error: as `judge`.
Result<std::optional<std::int64_t>> start_of_newcomer(const World& world);

/// One use of Berth; program, library and agent all use it. It settles once the site file, the
/// machine or the lease around us, and the mask of this process. Then it looks, picks, explains and
/// leases. Starts nothing and prints nothing. Move-only.
class Session {
 public:
  /// For questions of this process; BERTH_LEASE says inside which lease it is. `warn`: is told whom
  /// a question has to wait for. Error: a site file that is malformed; a lease directory that is
  /// not fit for use.
  static Result<Session> open(SourceAccess source, MaskUse mask, const store::Warn& warn = {});
  /// For questions asked at this place.
  static Result<Session> open_at(Domain domain, SourceAccess source, MaskUse mask);
  /// With everything settled by the caller; only `within` of the options comes from the place.
  Session(Domain domain, SourceAccess source, LookOptions options);

  const SitePolicy& policy() const { return options_.policy; }
  const Domain& domain() const { return domain_; }
  const SourceAccess& source() const { return source_; }
  /// What the asking user should know of the place, one sentence each: "the lease in BERTH_LEASE=…
  /// has ended …".
  const std::vector<std::string>& warnings() const { return domain_.warnings; }

  /// From now on these processes count as if they were not there: they are about to get a lease.
  void set_aside(std::set<std::uint32_t> processes) { options_.adopted = std::move(processes); }

  /// From now on each look also finds out who keeps the gate shut (World::halted_in_gate), for a
  /// command that tells people why they wait.
  void asks_for_gate() { options_.gate = true; }

  /// The machine and the ledger as they are now, with the readings that judging the request needs,
  /// and `also`. Nobody asks, so each process without a lease is an outsider. Error: as
  /// Source::read; the lease directory is not fit for use.
  Result<World> look(const Request& request, ReadingSet also = {}) const;

  /// Leases nothing: the next process that asks may get the same answer. A topology that cannot be
  /// read is no error: the choice then says so. Error: `usage`; as `look`.
  Result<std::variant<Picked, Refusal>> pick(const Request& request) const;

  /// Error: as `pick`.
  Result<Explained> why(const Request& request) const;

  /// The refusal with which `acquire` would answer at once, because nothing on this machine can
  /// ever satisfy the request. nullopt: something could. Error: as `pick`; `impossible` if it asks
  /// for too much time, or if not all would see a lease made here (Domain::is_unseen).
  Result<std::optional<Refusal>> never(const Request& request) const;

  /// Takes a lease for this process, in its turn, as acquire_by_queue. Error: as `never`; `not_now`
  /// if the request would wait for leases that this process has itself, according to `words`.
  Result<std::variant<HeldLease, Refusal>> acquire(const Request& request, const TicketWords& words,
                                                   const Patience& patience = {},
                                                   const OnWait& on_wait = {}) const;

 private:
  /// `requester`: as in LookOptions.
  Result<World> look_for(std::optional<std::uint32_t> requester, const Request& request,
                         ReadingSet also = {}) const;
  Result<void> understands_policy() const;
  Result<void> is_seen_by_all() const;
  Result<void> check_not_blocked_by_own_leases(const Request& request,
                                               const std::vector<TicketId>& own) const;
  Result<Refusal> refuse(const Request& request, Refused refused, const Patience& patience) const;

  Domain domain_;
  SourceAccess source_;
  LookOptions options_;
};

}  // namespace berth::leasing
