#include "berth/api/berth.h"

#include <memory>
#include <utility>
#include <variant>

#include "berth/answers/answers.h"
#include "berth/api/lease_helper_client.h"
#include "berth/lease/look.h"
#include "berth/lease/session.h"
#include "berth/request/request.h"
#include "berth/source/source.h"

namespace berth {
namespace {

// A probe ends within a fraction of a millisecond of the end of its input.
constexpr std::chrono::milliseconds kProbeEndsWithin{100};

/// The probe of one question. A host that lists its children finds none of ours afterwards.
class HostProbe : public source::ProbeSource {
 public:
  explicit HostProbe(ProbeSource probe) : ProbeSource(std::move(probe)) {}
  HostProbe(HostProbe&&) noexcept = default;
  HostProbe& operator=(HostProbe&&) = delete;
  ~HostProbe() override { end(kProbeEndsWithin); }
};

Result<HostProbe> start_probe() {
  BERTH_LET(auto program, api::find_program());
  source::ProbeOptions options = leasing::probe_options();
  options.program = std::move(program);
  options.version = version();
  BERTH_LET(auto probe, source::ProbeSource::start(std::move(options)));
  return HostProbe(std::move(probe));
}

/// The probe is started first, so that it loads the driver while the rest is read. Berth prints no
/// message here, because it must not write to the streams of a host program.
Result<leasing::Session> open_session(MaskUse mask) {
  BERTH_LET(auto probe, start_probe());
  const auto shared = std::make_shared<HostProbe>(std::move(probe));
  return leasing::Session::open({[shared]() -> Result<source::Source*> { return shared.get(); }, [] {}},
                                mask);
}

}  // namespace

Result<Request> request(unsigned count, std::string_view where) {
  Request wanted;
  wanted.count = count;
  if (where.empty()) return wanted;
  BERTH_LET(auto expression, Expression::parse(where));
  wanted.conditions = expression.conjuncts();
  return wanted;
}

Result<Snapshot> snapshot(ReadingSet readings) {
  BERTH_LET(auto source, start_probe());
  return source.read(readings);
}

std::expected<Picked, Refusal> pick(const Request& request, MaskUse mask) {
  const auto no = [](Error error) { return std::unexpected(Refusal{std::move(error)}); };
  const auto session = open_session(mask);
  if (!session) return no(session.error());
  const auto answer = session->pick(request);
  if (!answer) return no(answer.error());
  if (const auto* refusal = std::get_if<leasing::ExplainedRefusal>(&*answer))
    return std::unexpected(Refusal{answers::in_words(*refusal, answers::plain_style()),
                                   api::findings(refusal->verdicts, refusal->world.facts.snapshot)});
  const auto& found = std::get<leasing::PickedDevices>(*answer);
  const Snapshot& snapshot = found.world.facts.snapshot;
  JobMask job = job_mask(found.choice.uuids, snapshot, session->policy().mask == MaskForm::uuid);
  return Picked{api::devices_among(found.choice.uuids, snapshot), std::move(job.visible),
                answers::all_notes(*session, leasing::notes_on(found)), std::move(job.variables)};
}

Result<std::vector<Finding>> why(const Request& request, MaskUse mask) {
  BERTH_LET(const auto session, open_session(mask));
  BERTH_LET(const auto found, session.why(request));
  return api::findings(found.verdicts, found.world.facts.snapshot);
}

}  // namespace berth
