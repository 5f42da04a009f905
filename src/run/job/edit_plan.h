#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"

namespace berth {

/// The position of a job among those of its user with the same request. Positions are compared as
/// texts.
std::string position_of(std::uint64_t number, std::string_view moved_to);
/// A position before `next` and behind `before`; "": behind or before none. REQUIRES: before <
/// next.
std::string position_between(std::string_view before, std::string_view next);

// What an edit of a waiting job does, as a pure decision: what is known of the job and of those of
// its user with the same request goes in, and what to write comes out.
//
// Of jobs with the same request one process stands in the queue of the machine. Among them the
// places change hands: that process stays where it is, and runs the job that is first then. So
// nobody else waits longer. Whatever changes the request gives up that place.

/// Ends the message of an edit that is refused only for what it costs.
inline constexpr std::string_view kSayYes = "To do it all the same, say --yes";

/// What a user wants changed.
struct EditWish {
  enum class Move { same, first, last, before };

  std::optional<bool> hold{};
  Move move = Move::same;
  std::uint64_t before = 0;  ///< Move::before: this job
  bool new_request = false;
  bool yes = false;  ///< the user knows what it costs
};

/// A job of the user that is not over.
struct RivalJob {
  std::uint64_t number = 0;
  std::string position;  ///< as position_of gives it
  bool on_hold = false;
  std::optional<TaskId> in_queue{};   ///< its task that a process has in the queue of the machine
  std::optional<TaskId> passes_to{};  ///< TaskStanding::passes_to of that
  /// Its process may run a task of another job instead.
  bool can_pass = false;
  /// The task that such a process would run; nullopt: none, since it waits for something else as
  /// well.
  std::optional<TaskId> heir{};
  bool is_put_off = false;  ///< that task could not join the queue, and tries again later
};

struct EditFacts {
  std::uint64_t number = 0;
  std::optional<unsigned> index{};        ///< one task of an array is named
  std::vector<TaskStanding> standings{};  ///< of its tasks
  std::vector<RivalJob> rivals{};         ///< those with its request, itself included
  std::uint64_t newest = 0;               ///< the highest number of a job
};

/// What to write. Nothing of it: the job is so already.
struct EditPlan {
  std::optional<std::string> position{};  ///< its new place
  std::optional<bool> hold{};
  bool new_request = false;
  /// The process that has this task in the queue is to run `heir` instead; nullopt: what it came
  /// for.
  struct Pass {
    TaskId in_queue;
    std::optional<TaskId> heir{};

    bool operator==(const Pass&) const = default;
  };
  std::optional<Pass> pass{};
  /// No process stands in the queue for these jobs, and the runner sends one. It may have started
  /// one already, by the order of before, and nobody can say yet for which job. What this process
  /// is to run is planned once it has joined.
  bool awaits_process = false;
  /// The process that has this task in the queue of the machine leaves it, and the place is lost.
  std::optional<TaskId> leaves_queue{};
  std::string told;  ///< what has happened, a sentence for the user

  bool operator==(const EditPlan&) const = default;
};

/// Error: `usage` for a task of an array, and for a place before a job of which it is no rival;
/// `failure` if the job does not wait, or if it would lose its place and the user has not said that
/// it may.
Result<EditPlan> plan_edit(const EditFacts& facts, const EditWish& wish);

/// Whether a task of the job may run in the place of another one: nothing but its turn keeps it
/// from its start.
bool may_run_instead(const Job& job);

/// Why a job that stands like this cannot be edited.
Error not_editable(std::uint64_t number, const std::vector<TaskStanding>& standings);

}  // namespace berth
