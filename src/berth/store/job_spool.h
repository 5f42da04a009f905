#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/job.h"
#include "berth/sys/descriptor.h"

namespace berth::store {

/// A job and how its tasks stand.
struct SpooledTask {
  TaskId id;
  TaskStanding standing;
};

/// A program that asks for GPUs, for as long as it lives: the lock ends with its process.
struct Tenant {
  std::uint64_t number = 0;  ///< no job and no other tenant has it
  sys::Descriptor lock;
};

/// The jobs of a user on this machine, as files in one folder that nobody else writes
/// (docs/jobs-protocol.md). What is in the files describes; that a task has a process is a lock, which the
/// kernel keeps.
class JobSpool {
 public:
  /// Where this user's jobs of this machine are: below $XDG_STATE_HOME, else ~/.local/state; where that is on
  /// a network, whose locks cannot be trusted, below /var/tmp. Error: `failure`, when there is no home.
  static Result<std::string> standard_path();
  /// One that is not there has no jobs, and is not made. Error: `failure`, also when it belongs to another
  /// user.
  static Result<JobSpool> open(const std::string& path);
  /// The same, to add jobs to: makes it where it is missing.
  static Result<JobSpool> make(const std::string& path);

  const std::string& path() const { return path_; }

  /// Adds a job whole, or not at all, and gives its number, which no other job here ever had. It is on the
  /// disk when this returns. `environment` is the variables that its command gets.
  /// `script`: what Job::has_script or Job::lines_of speaks of.
  Result<std::uint64_t> add(const Job& job, const std::vector<std::string>& environment,
                            std::string_view script = {});
  /// In order.
  Result<std::vector<std::uint64_t>> numbers() const;
  /// nullopt: there is none of this number (any more).
  Result<std::optional<Job>> job(std::uint64_t number) const;
  Result<std::vector<std::string>> environment(std::uint64_t number) const;
  /// Error: `failure`, when the job was forgotten. Whoever waits for one asks it now and then.
  Result<void> still_has(std::uint64_t number) const;
  /// How a task stands now. One of a job that is gone waits.
  Result<TaskStanding> standing(TaskId id) const;
  /// How all tasks of a job stand, in the order of `tasks_of`. Reads no files of those to which nothing has
  /// happened.
  /// `before`: an earlier answer; what was over then is not read again.
  Result<std::vector<TaskStanding>> standings(std::uint64_t number, const Job& job,
                                              const std::vector<TaskStanding>& before = {}) const;
  /// Whether the array as a whole was cancelled.
  Result<bool> is_cancelled(std::uint64_t number) const;
  /// Removes a job and all of its files. REQUIRES: all of its tasks are over.
  Result<void> forget(std::uint64_t number);

  /// The processes that share the lock of the task: all that live of it, as far as they may be asked.
  std::vector<pid_t> holders(TaskId id) const;
  /// The lock of the task, for all who share the descriptor. Empty: somebody else has it.
  Result<sys::Descriptor> hold(TaskId id) const;
  /// Writes what has happened, with the time and the boot filled in. `durable`: it is on the disk when this
  /// returns. Error: `failure`, and then it has not happened.
  Result<void> append(TaskId id, TaskEvent event, bool durable = false) const;
  /// The same of several, which happen at once for whoever reads.
  Result<void> append(TaskId id, std::vector<TaskEvent> events, bool durable = false) const;
  /// Whether nobody has said this of the job before: a word of a file name. False also where it cannot be
  /// kept.
  bool claim(std::uint64_t number, const std::string& word) const;
  /// The file of what the task writes, made where it is missing.
  Result<sys::Descriptor> output(TaskId id) const;
  std::string output_path(TaskId id) const;
  std::string script_path(std::uint64_t number) const;
  /// Its text.
  Result<std::string> script(std::uint64_t number) const;

  /// Makes the caller a tenant. REQUIRES: `make`.
  Result<Tenant> move_in() const;
  /// Whether it is still there.
  Result<bool> has_tenant(std::uint64_t number) const;

  /// The lock of the one runner. Empty: there is one.
  Result<sys::Descriptor> hold_as_runner() const;
  Result<bool> has_runner() const;
  /// What `ring` writes is read here. Error: `failure`.
  Result<sys::Descriptor> bell() const;
  /// Tells the runner, if there is one, which task has news; without an index, all of the job. Never waits.
  void ring(TaskId id) const;

 private:
  JobSpool(std::string path, sys::Descriptor folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  Result<std::uint64_t> next_number(int counter) const;
  Result<void> fill_draft(const Job& job, const std::vector<std::string>& environment,
                          std::string_view script) const;
  Result<TaskStanding> own_standing(TaskId id) const;

  std::string path_;
  sys::Descriptor folder_;
};

/// The id of this boot of the machine.
std::string boot_id();

}  // namespace berth::store
