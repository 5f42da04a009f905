#include "berth/api/berth.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "berth/api/answers.h"
#include "berth/api/program.h"
#include "berth/lease/look.h"
#include "berth/lease/place.h"
#include "berth/lease/site_file.h"
#include "berth/render/explain.h"
#include "berth/source/probe_source.h"
#include "berth/store/lease_directory.h"

namespace berth {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

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
  source::ProbeOptions options;
  options.program = std::move(program);
  options.version = version();
  options.state_directory = store::choose_lease_directory().path;
  BERTH_LET(auto probe, source::ProbeSource::start(std::move(options)));
  return HostProbe(std::move(probe));
}

/// Everything that a question is answered from.
struct Scene {
  HostProbe source;
  leasing::Place place;
  leasing::LookOptions look;
};

Result<Scene> set_scene(MaskUse mask) {
  BERTH_LET(auto source, start_probe());
  BERTH_LET(auto site, leasing::read_site_files(leasing::standard_site_file_paths()));
  // Nobody is told anything on the way: what a host prints is its own affair.
  BERTH_LET(auto place, leasing::find_place({}));
  leasing::LookOptions look;
  look.policy = std::move(site.policy);
  look.within = place.within;
  if (place.believe_mask && mask == MaskUse::inherit) look.mask = variable("CUDA_VISIBLE_DEVICES");
  look.device_order = variable("CUDA_DEVICE_ORDER");
  return Scene{std::move(source), std::move(place), std::move(look)};
}

Refusal refused(const Request& request, const std::vector<Verdict>& verdicts, const Facts& facts) {
  const auto able = candidates(request, facts);
  if (!able) return {able.error()};
  const ErrorCode code = able->size() < request.count ? ErrorCode::impossible : ErrorCode::not_now;
  std::string text =
      render::refusal({request, facts.snapshot, verdicts, able->size(), {}}, api::plain_style());
  while (text.ends_with('\n')) text.pop_back();
  return {{code, std::move(text)}, api::findings(verdicts, facts.snapshot)};
}

}  // namespace

std::string_view version() {
  return BERTH_VERSION;
}

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

std::expected<Picked, Refusal> pick(const Request& asked, MaskUse mask) {
  const auto no = [](const Error& error) { return std::unexpected(Refusal{error}); };
  const Request request = api::settled(asked);
  auto scene = set_scene(mask);
  if (!scene) return no(scene.error());
  scene->look.also = readings_in_case_of_choice(request);
  auto world = leasing::look(scene->source, *scene->place.store, request, scene->look);
  if (!world) return no(world.error());
  const auto verdicts = judge(request, world->ledger, world->facts);
  if (!verdicts) return no(verdicts.error());
  if (std::cmp_less(std::ranges::count_if(*verdicts, &Verdict::free), request.count))
    return std::unexpected(refused(request, *verdicts, world->facts));
  if (auto read = leasing::read_topology_for(request, scene->source, *world); !read) return no(read.error());
  Choice choice = choose(request, *verdicts, world->facts.snapshot);
  Picked picked{api::devices_among(choice.uuids, world->facts.snapshot), "", std::move(choice.notes)};
  picked.visible_devices = api::visible_devices(picked.devices, world->facts.snapshot);
  return picked;
}

Result<std::vector<Finding>> why(const Request& request, MaskUse mask) {
  BERTH_LET(auto scene, set_scene(mask));
  BERTH_LET(auto world, leasing::look(scene.source, *scene.place.store, request, scene.look));
  BERTH_LET(const auto verdicts, judge(request, world.ledger, world.facts));
  return api::findings(verdicts, world.facts.snapshot);
}

}  // namespace berth
