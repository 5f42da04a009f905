// A wrong "it is over" would lose a job. So nothing here is believed that the files of the job do
// not say again. Their mark is taken after the job was read, and has to name as many bytes as were
// read. Every runner compares it with the files as they are.

#include "berth/jobs/jobs_over.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text_match.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_spool_files.h"
#include "berth/jobs/send_notice.h"
#include "berth/sys/file.h"

namespace berth::jobs {
namespace {

constexpr std::string_view kHead = "berth-over 1\n";
// Some hundred thousand jobs.
constexpr unsigned kMostMebibytes = 16;
// Lines of jobs that were run again, or forgotten.
constexpr std::size_t kMostOldLines = 1000;

std::string path_of(const JobSpool& spool) {
  return spool.path() + "/over";
}

std::string text_of_job(std::uint64_t number, const JobSpool::StateMark& mark, bool is_array) {
  return fmt::format("{} {} {} {} {}\n", number, mark.file, mark.bytes, mark.newest_ns,
                     is_array ? "array" : "job");
}

}  // namespace

JobsOver::JobsOver(const JobSpool& spool) : spool_(spool) {
  const auto text = sys::read_named(path_of(spool), kMostMebibytes, "reading");
  if (!text || !text->starts_with(kHead)) return;
  is_readable_ = true;
  // A line that a full disk has cut off is none, and names no file that is there.
  for (const std::string_view line : parts_at(std::string_view(*text).substr(kHead.size()), '\n'))
    if (take(line)) ++lines_;
}

bool JobsOver::take(std::string_view line) {
  const auto words = words_at(line);
  if (words.size() != 5) return false;
  const auto number = number_from_text<std::uint64_t>(words[0]);
  const auto file = number_from_text<std::uint64_t>(words[1]);
  const auto bytes = number_from_text<std::uint64_t>(words[2]);
  const auto newest = number_from_text<std::int64_t>(words[3]);
  if (!number || !file || !bytes || !newest) return false;
  known_.insert_or_assign(*number, Known{{*file, *bytes, *newest}, words[4] == "array"});
  return true;
}

bool JobsOver::is_still(std::uint64_t number) const {
  const auto found = known_.find(number);
  if (found == known_.end()) return false;
  const auto now = spool_.mark_of(number, found->second.is_array);
  return now && *now == found->second.mark;
}

void JobsOver::note(std::uint64_t number, const JobSpool::Told& told) {
  if (!std::ranges::all_of(told.standings, is_gone)) return;
  noted_.push_back({number, told.state_bytes, told.is_array, file_of_end_notice(told.job, told.standings)});
}

// "": it is not to be written down.
std::string JobsOver::checked_text(const Noted& noted) {
  if (!noted.told.empty()) {
    const std::string file = fmt::format("{}/{}/{}", spool_.path(), noted.number, noted.told);
    if (::access(file.c_str(), F_OK) != 0) return "";
  }
  const auto mark = spool_.mark_of(noted.number, noted.is_array);
  if (!mark || !*mark || (*mark)->bytes != noted.state_bytes) return "";
  known_.insert_or_assign(noted.number, Known{**mark, noted.is_array});
  return text_of_job(noted.number, **mark, noted.is_array);
}

void JobsOver::keep() {
  std::string lines;
  for (const Noted& each : noted_) lines += checked_text(each);
  lines_ += noted_.size();
  noted_.clear();
  if (!lines.empty()) write(lines);
}

void JobsOver::write(const std::string& lines) const {
  // A job that cannot be written down is read again by the next runner.
  const std::string path = path_of(spool_);
  const bool is_grown = lines_ > 2 * known_.size() + kMostOldLines;
  if (is_readable_ && !is_grown) {
    const sys::Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
    if (file) (void)spool_files::write_out(file.get(), lines);
    return;
  }
  std::string all(kHead);
  for (const auto& [number, known] : known_) all += text_of_job(number, known.mark, known.is_array);
  (void)sys::replace_file(path, all, 0600);
}

}  // namespace berth::jobs
