#include "berth/history/history_writer.h"
#include "berth/view/past_leases.h"
#include "berth/view/usage.h"

#include <fmt/format.h>

#include <cstdlib>

#include "berth/history/file_claim.h"

namespace berth::history {
namespace {

constexpr int kUnavailable = 503;

HistoryAnswer unavailable(std::string message) {
  return {kUnavailable, view::error_json({ErrorCode::failure, std::move(message)})};
}

HistoryAnswer unknown_device(const std::string& uuid, const std::vector<std::string>& known) {
  return {404,
          view::error_json({ErrorCode::usage, fmt::format("nothing is known of a device '{}'; there are {}",
                                                          uuid, fmt::join(known, ", "))})};
}

}  // namespace

void HistoryWriter::keep_in(std::optional<std::string> path, std::int64_t now_s) {
  if (path == path_) return;
  write(now_s);
  file_.reset();
  recorder_.reset();
  path_ = std::move(path);
  status_ = Status::off;
  reason_.clear();
  write(now_s);
}

void HistoryWriter::see(const Observation& observation) {
  every_s_ = observation.every_s;
  if (recorder_) recorder_->see(observation);
}

void HistoryWriter::write(std::int64_t now_s) {
  if (!path_) return;
  // If somebody has removed the file, nobody would ever read what is written there.
  if (file_ && !file_->is_still_there()) file_.reset();
  if (!file_ && !open(now_s)) return;
  if (auto done = write_and_thin(now_s); !done) {
    meet(done.error(), now_s);
  } else if (status_ != Status::ok) {
    become(Status::ok, "");
  }
}

Done<void> HistoryWriter::write_and_thin(std::int64_t now_s) {
  if (!recorder_->pending().empty()) {
    if (auto done = file_->write(recorder_->pending()); !done) {
      (void)file_->make_room(now_s);  // for the next time, where its bound is what it met
      return done;
    }
    recorder_->written();
    BERTH_DO(file_->make_room(now_s));
  }
  if (std::abs(now_s - thinned_s_) < kThinningEvery) return {};
  thinned_s_ = now_s;
  BERTH_DO(file_->thin(now_s));
  recorder_->name_all_devices();  // also one of which nothing was left
  return {};
}

bool HistoryWriter::open(std::int64_t now_s) {
  auto file = HistoryFile::open(*path_);
  std::string aside;
  if (!file && file.error().kind == DatabaseError::Kind::corrupt) {
    if (auto renamed = rename_corrupt(*path_, now_s); renamed) {
      aside = fmt::format("{} was corrupt ({}): it is now {}, and a new one begins", *path_,
                          file.error().message, *renamed);
      file = HistoryFile::open(*path_);
    } else {
      file = std::unexpected(renamed.error());
    }
  }
  auto known = file ? file->known(now_s) : std::unexpected(file.error());
  if (!known) {
    // If the file is so broken that it cannot be read, it is set aside when it is opened again.
    become(Status::failing, fmt::format("{}: {}", *path_,
                                        known.error().kind == DatabaseError::Kind::taken
                                            ? "another agent has it: end that, or name another file"
                                            : known.error().message));
    return false;
  }
  file_.emplace(std::move(*file));
  if (recorder_) {
    recorder_->name_all_devices();
  } else {
    recorder_.emplace(std::move(*known));
  }
  if (!aside.empty()) {
    say_("the history: " + aside);
    status_ = Status::ok;
    reason_ = aside;
  }
  return true;
}

void HistoryWriter::meet(const DatabaseError& fault, std::int64_t now_s) {
  if (fault.kind == DatabaseError::Kind::corrupt) {
    file_.reset();
    // The file is opened again. If it is broken, that finds the same fault and sets the file aside.
    if (open(now_s)) return;
  }
  become(Status::failing, fmt::format("{}: {}", *path_, fault.message));
}

void HistoryWriter::become(Status status, const std::string& reason) {
  if (status == Status::failing && status_ != Status::failing)
    say_(fmt::format("the history is not written: {}; serving on, and trying again", reason));
  if (status == Status::ok && status_ == Status::failing) say_("the history is written again");
  status_ = status;
  reason_ = reason;
}

view::HistoryHealth HistoryWriter::health() const {
  return {status_, reason_, recorder_ ? recorder_->lost() : 0};
}

HistoryAnswer HistoryWriter::answer(const Question& question, std::int64_t now_s) {
  if (!path_) return unavailable("no history is kept here: the agent was started with --no-history");
  if (!file_) return unavailable("there is no history at the moment: " + reason_);
  auto answered = answer_from_file(question, now_s);
  if (answered) return std::move(*answered);
  meet(answered.error(), now_s);
  return unavailable("reading the history: " + answered.error().message);
}

Done<HistoryAnswer> HistoryWriter::answer_from_file(const Question& question, std::int64_t now_s) {
  constexpr auto kLine = view::Layout::line;
  if (const auto* usage = std::get_if<UsageQuestion>(&question)) {
    BERTH_LET(const auto found, file_->usage(usage->by, {step_of(now_s - usage->since_s, 3600), now_s}));
    return HistoryAnswer{200, view::usage_json(found, kLine)};
  }
  if (const auto* leases = std::get_if<LeasesQuestion>(&question)) {
    BERTH_LET(const auto found, file_->recorded_leases(*leases, now_s));
    return HistoryAnswer{200, view::recorded_leases_json(found, kLine)};
  }
  DeviceQuestion device = std::get<DeviceQuestion>(question);
  device.least_step_s = every_s_;
  BERTH_LET(const auto found, file_->device_history(device, now_s));
  if (found) return HistoryAnswer{200, view::device_history_json(*found, kLine)};
  BERTH_LET(const auto known, file_->device_uuids());
  return unknown_device(device.uuid, known);
}

}  // namespace berth::history
