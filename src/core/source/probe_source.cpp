#include "berth/source/source.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "berth/device/device_readings.h"
#include "berth/source/probe/probe.h"
#include "berth/source/probe_link.h"
#include "berth/sys/clock.h"

namespace berth::source {
namespace {

Error not_responding(std::string_view reason) {
  return {ErrorCode::no_driver,
          fmt::format(
              "{}. A call into the GPU's driver does not come back: dmesg may say why (NVRM, Xid, amdgpu), "
              "and often only a reboot helps",
              reason)};
}

/// Which probe is asked: that of the first vendor is asked for all vendors too.
std::string_view probe_of(SourceKind kind) {
  const auto table = source_table();
  const auto row = std::ranges::find(table, kind.name(), &SourceRow::name);
  return row == table.end() || row->vendor == table.front().vendor ? "" : row->name;
}

struct Question {
  ReadingSet readings;
  std::vector<std::string> only{};          ///< as in ReadRequest
  std::function<void()> meanwhile = [] {};  ///< may be called never, or again
};

}  // namespace

class ProbeSource::Body {
 public:
  explicit Body(ProbeOptions options)
      : options_(std::move(options)), stuck_(options_.state_directory, probe_of(options_.kind)) {}

  /// Starts a probe, unless one is known to hang.
  Result<void> start_session() {
    const bool is_forked = std::exchange(options_.is_forked, false);
    remembered_ = stuck_.remembered();
    if (remembered_) return {};
    ProbeOptions options = options_;
    options.is_forked = is_forked;
    BERTH_LET(auto link, ProbeLink::start(options));
    link_.emplace(std::move(link));
    used_ = false;
    return {};
  }

  Result<Snapshot> read(const Question& question) {
    auto known = read_once(question);
    if (!remembered_ || !options_.kind.is_automatic()) return known;
    return with_others(std::move(known), question.readings);
  }

  Result<Snapshot> read_once(const Question& question) {
    if (hanging_) {
      if (!hanging_->is_over()) return stale(last_ ? *last_ : *remembered_);
      hanging_.reset();
      stuck_.forget();
    }
    if (!link_) {
      BERTH_DO(start_session());
      if (remembered_) return stale(*remembered_);
    }
    const ReadRequest request{.readings = question.readings,
                              .kind = options_.kind,
                              .state_directory = options_.state_directory,
                              .version = options_.version,
                              .only = question.only};
    const auto outcome = link_->ask(request, question.meanwhile);
    if (outcome == ProbeLink::Outcome::whole) {
      may_start_again_ = true;
      used_ = true;
      return take_answer(question);
    }
    if (outcome == ProbeLink::Outcome::silent) return give_up();
    const auto ending = link_->ending();
    // The probe ended while nobody had asked it anything, or was killed: a user or the kernel
    // wanted its memory. A request in the queue must not lose its place for that.
    const bool idle = used_ && link_->answer().empty();
    if ((idle || was_killed(ending)) && std::exchange(may_start_again_, false)) {
      link_.reset();
      return read_once(question);
    }
    return take_ending(ending);
  }

  void end(std::chrono::milliseconds patience) {
    if (link_) link_->end(patience);
    link_.reset();
    for (const auto& [source, other] : others_) other->end(patience);
  }

  void set_kind(SourceKind kind) {
    // A probe that loads the wrong library may be hanging in it.
    const bool loads_first = kind.is_automatic() || kind.name() == source_table().front().name;
    if (!loads_first && options_.kind != kind) link_.reset();
    options_.kind = kind;
    stuck_ = StuckProbe(options_.state_directory, probe_of(kind));
  }

 private:
  /// If the driver of one maker hangs, the devices of another maker must stay visible. So another
  /// probe is asked for them.
  Result<Snapshot> with_others(Result<Snapshot> known, ReadingSet readings) {
    for (const SourceRow& row : source_table()) {
      const SourceKind kind(row.name);
      // It looks for files of the kernel, and asks no driver.
      if (probe_of(kind).empty() || !row.make(-1)->found()) continue;
      auto& other = others_[row.name];
      if (!other) {
        ProbeOptions options = options_;
        options.kind = kind;
        other = std::make_unique<Body>(std::move(options));
      }
      auto told = other->read({readings});
      if (!told) continue;
      if (known) {
        known = beside(*std::move(known), *std::move(told));
      } else {
        told->notes.push_back(fmt::format("Other GPUs are not listed: {}.", known.error().message));
        known = std::move(told);
      }
    }
    return known;
  }

  Result<Snapshot> take_answer(const Question& question) {
    const std::string& answer = link_->answer();
    if (auto error = decode_error(answer)) return std::unexpected(std::move(*error));
    auto snapshot = decode_snapshot(answer);
    if (!snapshot) {
      link_.reset();
      return std::unexpected(context(snapshot.error(), "reading the probe's answer"));
    }
    if (options_.keep && question.only.empty()) last_ = *snapshot;
    return snapshot;
  }

  static bool was_killed(const std::optional<ProcessEnd>& ending) {
    return ending && (ending->signal == SIGKILL || ending->signal == SIGTERM);
  }

  Result<Snapshot> take_ending(const std::optional<ProcessEnd>& ending) {
    const Interrupted interrupted = cut_at_last_progress(link_->answer());
    const std::string where = interrupted.stage.kind == Stage::Kind::device
                                  ? fmt::format(" at GPU {}", interrupted.stage.index)
                                  : "";
    Error error{ErrorCode::failure, fmt::format("the probe that asks the GPU's driver ended{} with {}", where,
                                                ending ? sys::to_text(*ending) : "no exit status yet")};
    link_.reset();
    return std::unexpected(std::move(error));
  }

  /// The deadline is past. What is known is the answer, and the probe is left to itself.
  Result<Snapshot> give_up() {
    const std::string since = sys::wall_text(link_->silent_since_s());
    const Interrupted interrupted = cut_at_last_progress(link_->answer());
    auto partial = decode_snapshot(interrupted.record);
    const bool driver_hangs =
        interrupted.stage.kind == Stage::Kind::driver || interrupted.stage.kind == Stage::Kind::device;
    if (!driver_hangs) {
      link_.reset();
      if (!partial) return std::unexpected(partial.error());
      return finish_interrupted(std::move(*partial), interrupted.stage, last_, since);
    }
    Snapshot known = partial ? finish_interrupted(std::move(*partial), interrupted.stage, last_, since)
                             : last_.value_or(Snapshot{});
    remember(known, since);
    if (known.devices.empty()) return std::unexpected(not_responding("driver not responding since " + since));
    return partial ? Result<Snapshot>(std::move(known)) : stale(std::move(known));
  }

  void remember(const Snapshot& known, const std::string& since) {
    remembered_ = known;
    if (!remembered_->stale_reason) {
      remembered_->stale_reason =
          fmt::format("driver not responding since {} (process {} hangs in it)", since, link_->pid());
    }
    stuck_.remember(link_->unread_by_probe(), *remembered_);
    hanging_ = std::move(link_);
    link_.reset();
  }

  /// Old readings are only for looking at. Their devices count as not responding, so no decision
  /// uses them.
  Result<Snapshot> stale(Snapshot known) const {
    known.stale_reason = remembered_->stale_reason;
    if (known.devices.empty()) return std::unexpected(not_responding(*known.stale_reason));
    for (Device& device : known.devices) {
      if (device.state != DeviceState::ok) continue;
      device.state = DeviceState::unresponsive;
      device.state_reason = "not asked: " + *known.stale_reason;
    }
    return known;
  }

  ProbeOptions options_;
  StuckProbe stuck_;
  std::optional<ProbeLink> link_;
  bool used_ = false;                   ///< link_ has answered before
  bool may_start_again_ = true;         ///< the last one has answered, or is the first
  std::optional<ProbeLink> hanging_;    ///< ours that has not come back
  std::optional<Snapshot> remembered_;  ///< set: a probe hangs, ours or another's, and this was known then
  /// By the source's name: asked while ours hangs.
  std::map<std::string_view, std::unique_ptr<Body>> others_;
  std::optional<Snapshot> last_;  ///< good answer, where answers are kept
};

ProbeSource::ProbeSource(std::unique_ptr<Body> body) : body_(std::move(body)) {}
ProbeSource::ProbeSource(ProbeSource&&) noexcept = default;
ProbeSource& ProbeSource::operator=(ProbeSource&&) noexcept = default;
ProbeSource::~ProbeSource() = default;

Result<ProbeSource> ProbeSource::start(ProbeOptions options) {
  auto body = std::make_unique<Body>(std::move(options));
  BERTH_DO(body->start_session());
  return ProbeSource(std::move(body));
}

Result<Snapshot> ProbeSource::read(ReadingSet readings) {
  return body_->read({readings});
}

Result<Snapshot> ProbeSource::read_of(const std::vector<std::string>& uuids, ReadingSet readings) {
  return body_->read({readings, uuids});
}

Result<Snapshot> ProbeSource::read_beside(ReadingSet readings, const std::function<void()>& meanwhile) {
  bool is_done = false;
  const auto once = [&] {
    if (!std::exchange(is_done, true)) meanwhile();
  };
  auto answer = body_->read({readings, {}, once});
  once();
  return answer;
}

void ProbeSource::end(std::chrono::milliseconds patience) {
  if (body_) body_->end(patience);
}

void ProbeSource::set_kind(SourceKind kind) {
  body_->set_kind(kind);
}

namespace {

/// The rows of one GPU and its instances: as they were last, else a bare one.
std::vector<Device> rows_of(unsigned index, const std::string& vendor, const std::optional<Snapshot>& last) {
  std::vector<Device> rows;
  if (last) {
    for (const Device& device : last->devices) {
      if (device.index == index) rows.push_back(device);
    }
  }
  if (rows.empty()) {
    rows.emplace_back().index = index;
    if (!vendor.empty()) rows.back().vendor = vendor;
  }
  return rows;
}

}  // namespace

Snapshot finish_interrupted(Snapshot partial, const Stage& stage, const std::optional<Snapshot>& last,
                            std::string_view since) {
  if (stage.kind == Stage::Kind::topology) {
    partial.notes.emplace_back("The driver takes long to tell how the GPUs are joined: going on without it.");
    return partial;
  }
  if (stage.kind == Stage::Kind::users) {
    partial.notes.emplace_back("The system's name service does not answer: some users have no name.");
    return partial;
  }
  if (stage.kind != Stage::Kind::device) return partial;

  for (unsigned index = stage.index; index < stage.count; ++index) {
    for (Device& device : rows_of(index, stage.vendor, last)) {
      device.state = DeviceState::unresponsive;
      device.state_reason =
          index == stage.index
              ? fmt::format("driver not responding since {}", since)
              : fmt::format("not asked: driver not responding since {} at GPU {}", since, stage.index);
      partial.devices.push_back(std::move(device));
    }
  }
  if (last)
    partial.stale_reason = fmt::format("driver not responding since {} at GPU {}", since, stage.index);
  return partial;
}

Snapshot beside(Snapshot known, Snapshot other) {
  if (other.devices.empty()) return known;
  const std::string vendor = other.devices.front().vendor;
  std::erase_if(known.devices, [&](const Device& old) { return old.vendor == vendor; });
  unsigned before = 0;
  for (const Device& device : known.devices) before = std::max(before, device.index + 1);
  for (Device& device : other.devices) {
    device.index += before;
    known.devices.push_back(std::move(device));
  }
  if (!known.topology) known.topology = std::move(other.topology);
  std::ranges::move(other.notes, std::back_inserter(known.notes));
  return known;
}

}  // namespace berth::source
