#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/job/job.h"
#include "berth/sys/descriptor.h"

// The files of a spool: their names, and how they are written and read. `folder`: a descriptor of
// the spool or of a folder in it.
namespace berth::jobs::spool_files {

/// "12/state" of job 12, "12/7.state" of its task 7.
std::string file_of(TaskId id, std::string_view what);
/// The job as an edit left it. It counts once an event names it.
std::string edited_file(std::uint64_t number, unsigned edit);

/// The byte of `job` that a process locks for as long as it has the task.
off_t byte_of_task(std::optional<unsigned> index);

/// nullopt: there is none. Error: `failure`. `kept`: gets the file, still open.
Result<std::optional<std::string>> read_file(int folder, const std::string& name,
                                             sys::Descriptor* kept = nullptr);
/// The same, for a file that mostly is empty, which one call tells instead of three.
Result<std::optional<std::string>> read_unless_empty(int folder, const std::string& name);

/// Makes a file, which is on the disk when this returns. Error: `failure`, also if the name is
/// taken.
Result<void> write_new(int folder, const char* name, std::string_view text, mode_t mode = 0600);
Result<void> write_out(int file, std::string_view text);
/// Room that a disk which fills up later keeps for what is appended from this byte on.
Result<void> reserve(int file, off_t from = 0);
/// Removes a folder of files. What cannot be removed stays.
void remove_folder(int parent, const char* name);

/// The file that could not be written, and the remedy.
std::unexpected<Error> not_written(const Error& error, std::string_view where);
std::unexpected<Error> forgotten(std::uint64_t number);

}  // namespace berth::jobs::spool_files
