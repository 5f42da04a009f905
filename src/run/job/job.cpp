#include "berth/job/job.h"

#include <fmt/format.h>

#include "berth/base/record.h"

namespace berth {

std::string to_text(TaskId id) {
  return id.index ? fmt::format("{}.{}", id.job, *id.index) : std::to_string(id.job);
}

std::optional<TaskId> task_id_from_text(std::string_view text) {
  const std::size_t point = text.find('.');
  TaskId id;
  const auto job = number_from_text<std::uint64_t>(text.substr(0, point));
  if (!job || *job == 0) return std::nullopt;
  id.job = *job;
  if (point == std::string_view::npos) return id;
  id.index = number_from_text<unsigned>(text.substr(point + 1));
  return id.index ? std::optional(id) : std::nullopt;
}

namespace {

constexpr std::string_view kJobNote = "job ";
constexpr std::string_view kNoteOfUser = ": ";

}  // namespace

std::string to_text(const TaskNote& job) {
  std::string name = job.name;
  for (std::size_t at = 0; (at = name.find(kNoteOfUser, at)) != std::string::npos;) name.erase(at + 1, 1);
  std::string text = fmt::format("{}{}", kJobNote, to_text(job.task));
  if (!name.empty()) text += " " + name;
  return job.note.empty() ? text : fmt::format("{}{}{}", text, kNoteOfUser, job.note);
}

std::optional<TaskNote> task_note_from_text(std::string_view note) {
  if (!note.starts_with(kJobNote)) return std::nullopt;
  note.remove_prefix(kJobNote.size());
  TaskNote job;
  if (const std::size_t colon = note.find(kNoteOfUser); colon != std::string_view::npos) {
    job.note = note.substr(colon + kNoteOfUser.size());
    note = note.substr(0, colon);
  }
  const std::size_t blank = note.find(' ');
  if (blank != std::string_view::npos) job.name = note.substr(blank + 1);
  const auto task = task_id_from_text(note.substr(0, blank));
  if (!task) return std::nullopt;
  job.task = *task;
  return job;
}

bool read_value(std::string_view text, TaskId& id) {
  const auto read = task_id_from_text(text);
  id = read.value_or(id);
  return read.has_value();
}

}  // namespace berth
