#include "berth/simulate/workload.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "berth/base/record.h"
#include "berth/base/text.h"

namespace berth {
namespace {

constexpr Moment kLongestJob = 10LL * 365 * 86'400;
constexpr Moment kLatestArrival = 100'000'000'000;  // within the year 5138
constexpr std::size_t kMostJobs = 1'000'000;

using JobCells = std::vector<std::string_view>;

Result<Moment> job_length(std::string_view text) {
  BERTH_LET(const auto seconds, seconds_from_text(text, Unitless::is_base));
  if (seconds < 1 || seconds > kLongestJob)
    return fail(ErrorCode::failure, "\"{}\" must be from 1 s to 3650 d", text);
  return seconds;
}

/// Takes a number of this many digits from the front.
std::optional<unsigned> take_digits(std::string_view& text, std::size_t digits) {
  unsigned number = 0;
  const std::string_view piece = text.substr(0, digits);
  const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), number);
  if (piece.size() < digits || error != std::errc() || end != piece.data() + digits) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

bool take_one_of(std::string_view& text, std::string_view allowed) {
  if (text.empty() || !allowed.contains(text.front())) return false;
  text.remove_prefix(1);
  return true;
}

/// "2026-11-20", "2026-11-20 14:02", "2026-11-20T14:02:05": seconds, as if without time zones.
std::optional<Moment> moment_of_date(std::string_view text) {
  const auto year = take_digits(text, 4);
  if (!year || !take_one_of(text, "-")) return std::nullopt;
  const auto month = take_digits(text, 2);
  if (!month || !take_one_of(text, "-")) return std::nullopt;
  const auto day = take_digits(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok()) return std::nullopt;
  Moment moment = std::chrono::sys_days(date).time_since_epoch().count() * Moment{86'400};
  Moment unit = 3600;
  for (std::string_view before = "T "; !text.empty() && unit > 0; before = ":", unit /= 60) {
    const auto part = take_one_of(text, before) ? take_digits(text, 2) : std::nullopt;
    if (!part || *part >= (unit == 3600 ? 24 : 60)) return std::nullopt;
    moment += *part * unit;
  }
  return text.empty() ? std::optional(moment) : std::nullopt;
}

Result<void> read_arrival(std::string_view text, WorkloadJob& job) {
  if (const auto date = moment_of_date(text)) {
    job.arrival = *date;
    return {};
  }
  const auto seconds = seconds_from_text(text, Unitless::is_base);
  if (!seconds || *seconds > kLatestArrival) {
    return fail(ErrorCode::failure,
                "\"{}\" is neither a date like 2026-11-20 14:02:05 nor a number of seconds", text);
  }
  job.arrival = *seconds;
  return {};
}

Result<void> read_devices(std::string_view text, WorkloadJob& job) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), job.devices);
  if (error != std::errc() || end != text.data() + text.size() || job.devices < 1)
    return fail(ErrorCode::failure, "\"{}\" must be a whole number from 1", text);
  return {};
}

Result<void> read_duration(std::string_view text, WorkloadJob& job) {
  BERTH_LET(const auto seconds, job_length(text));
  job.duration = seconds;
  return {};
}

Result<void> read_time(std::string_view text, WorkloadJob& job) {
  if (text.empty()) return {};
  BERTH_LET(const auto seconds, job_length(text));
  job.length = seconds;
  return {};
}

Result<void> read_user(std::string_view text, WorkloadJob& job) {
  job.user = text;
  return {};
}

Result<void> read_program(std::string_view text, WorkloadJob& job) {
  job.program = text;
  return {};
}

struct JobColumn {
  std::string_view name;
  bool is_needed;
  Result<void> (*read)(std::string_view text, WorkloadJob& job);
};
constexpr std::array kJobColumns{
    JobColumn{"arrival", true, read_arrival},   JobColumn{"devices", true, read_devices},
    JobColumn{"duration", true, read_duration}, JobColumn{"time", false, read_time},
    JobColumn{"user", false, read_user},        JobColumn{"program", false, read_program}};
constexpr std::string_view kHeader = "arrival,devices,duration,time,user,program";

JobCells csv_cells(std::string_view line) {
  JobCells cells;
  for (bool more = true; more;) {
    const std::size_t comma = line.find(',');
    std::string_view field = trimmed(line.substr(0, comma));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
      field = field.substr(1, field.size() - 2);
    cells.push_back(field);
    more = comma != std::string_view::npos;
    if (more) line.remove_prefix(comma + 1);
  }
  return cells;
}

Result<std::vector<const JobColumn*>> columns_of(std::string_view line) {
  std::vector<const JobColumn*> columns;
  for (const std::string_view name : csv_cells(line)) {
    const auto column =
        std::ranges::find_if(kJobColumns, [&](const JobColumn& each) { return same_text(each.name, name); });
    if (column == kJobColumns.end()) {
      return fail(ErrorCode::failure, "\"{}\" is no column; the first line names them: {}", name, kHeader);
    }
    if (std::ranges::find(columns, &*column) != columns.end())
      return fail(ErrorCode::failure, "the column {} stands there twice", column->name);
    columns.push_back(&*column);
  }
  for (const JobColumn& each : kJobColumns) {
    if (each.is_needed && std::ranges::find(columns, &each) == columns.end())
      return fail(ErrorCode::failure, "the column {} is missing; all are: {}", each.name, kHeader);
  }
  return columns;
}

Result<WorkloadJob> job_of(std::string_view line, const std::vector<const JobColumn*>& columns) {
  const JobCells cells = csv_cells(line);
  if (cells.size() != columns.size()) {
    return fail(ErrorCode::failure, "it has {} fields, and the first line {}", cells.size(), columns.size());
  }
  WorkloadJob job;
  for (std::size_t at = 0; at < cells.size(); ++at) {
    if (auto done = columns[at]->read(cells[at], job); !done) {
      return fail(ErrorCode::failure, "{}: {}", columns[at]->name, done.error().message);
    }
  }
  return job;
}

Result<void> add(WorkloadJob job, Workload& workload) {
  if (job.devices > workload.devices) {
    return fail(ErrorCode::failure, "devices: it wants {} of {}; --devices says how many there are",
                job.devices, workload.devices);
  }
  if (!workload.jobs.empty() && job.arrival < workload.jobs.back().arrival)
    return fail(ErrorCode::failure, "arrival: it comes before the job above it; sort the lines by arrival");
  if (workload.jobs.size() == kMostJobs)
    return fail(ErrorCode::failure, "there are more than {} jobs; take a part of them", kMostJobs);
  workload.jobs.push_back(std::move(job));
  return {};
}

}  // namespace

Result<Workload> workload_from_csv(std::string_view text, std::string_view name, std::size_t devices) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Workload workload{devices, {}};
  std::vector<const JobColumn*> columns;
  const auto read = [&](std::string_view line) -> Result<void> {
    if (columns.empty()) {
      BERTH_LET(auto named, columns_of(line));
      columns = std::move(named);
      return {};
    }
    BERTH_LET(auto job, job_of(line, columns));
    return add(std::move(job), workload);
  };
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    if (auto done = read(line); !done)
      return fail(ErrorCode::failure, "{}:{}: {}", name, number, done.error().message);
  }
  if (workload.jobs.empty()) return fail(ErrorCode::failure, "{}: it has no jobs", name);
  return workload;
}

}  // namespace berth
