#include "berth/api/berth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "berth/api/program.h"
#include "berth/lease/acquire.h"
#include "berth/lease/look.h"
#include "berth/lease/place.h"
#include "berth/lease/site_file.h"
#include "berth/source/probe_source.h"
#include "berth/store/lease_directory.h"

namespace berth {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

Result<source::ProbeSource> start_probe() {
  source::ProbeOptions options;
  options.program = api::find_program();
  options.state_directory = store::choose_lease_directory().path;
  auto probe = source::ProbeSource::start(std::move(options));
  if (!probe) return std::unexpected(context(probe.error(), "the berth program (BERTH_PROGRAM can name it)"));
  return probe;
}

/// Everything that a question is answered from.
struct Scene {
  source::ProbeSource source;
  leasing::Place place;
  leasing::LookOptions look;
};

Result<Scene> set_scene() {
  auto source = start_probe();
  if (!source) return std::unexpected(source.error());
  auto site = leasing::read_site_files(leasing::standard_site_file_paths());
  if (!site) return std::unexpected(site.error());
  // Nobody is told anything on the way: what a host prints is its own affair.
  auto place = leasing::find_place({});
  if (!place) return std::unexpected(place.error());
  leasing::LookOptions look;
  look.policy = std::move(site->policy);
  look.within = place->within;
  if (place->believe_mask) look.mask = variable("CUDA_VISIBLE_DEVICES");
  look.device_order = variable("CUDA_DEVICE_ORDER");
  return Scene{std::move(*source), std::move(*place), std::move(look)};
}

Error refused(const Request& request, const std::vector<Verdict>& verdicts, const Facts& facts) {
  if (auto possible = check_possible(request, facts); !possible) return possible.error();
  std::string reasons;
  for (const Verdict& verdict : verdicts) {
    const Device* device = find_device(facts.snapshot, verdict.uuid);
    if (verdict.free() || device == nullptr) continue;
    reasons += fmt::format("{}GPU {}: {}", reasons.empty() ? "" : "; ", label(*device), verdict.reason);
  }
  const auto free = std::ranges::count_if(verdicts, &Verdict::free);
  return {ErrorCode::not_now, fmt::format("{} of {} devices are free ({})", free, request.count, reasons)};
}

}  // namespace

struct Lease::Body {
  explicit Body(leasing::HeldLease taken)
      : held(std::move(taken)), id(to_text(held.ticket().id)), uuids(held.ticket().devices) {
    for (const Device* device : held.devices()) devices.push_back(*device);
  }

  leasing::HeldLease held;
  std::string id;
  std::vector<std::string> uuids;
  std::vector<Device> devices;
};

Lease::Lease(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

const std::string& Lease::id() const {
  return body_->id;
}
const std::vector<std::string>& Lease::uuids() const {
  return body_->uuids;
}
const std::vector<Device>& Lease::devices() const {
  return body_->devices;
}
const std::vector<std::string>& Lease::notes() const {
  return body_->held.notes();
}
void Lease::release() {
  body_->held.release();
}

std::string Lease::visible_devices() const {
  const bool instances =
      std::ranges::any_of(devices(), [](const Device& device) { return device.mig.has_value(); });
  std::string value;
  for (const Device& device : devices()) {
    value += value.empty() ? "" : ",";
    value += instances ? device.uuid : std::to_string(device.index);
  }
  return value;
}

Result<Request> request(unsigned count, std::string_view where) {
  Request wanted;
  wanted.count = count;
  if (where.empty()) return wanted;
  auto expression = Expression::parse(where);
  if (!expression) return std::unexpected(expression.error());
  wanted.conditions = expression->conjuncts();
  return wanted;
}

Result<Snapshot> snapshot(ReadingSet readings) {
  auto source = start_probe();
  if (!source) return std::unexpected(source.error());
  return source->read(readings);
}

Result<Choice> pick(const Request& request) {
  auto scene = set_scene();
  if (!scene) return std::unexpected(scene.error());
  auto world = leasing::look(scene->source, *scene->place.store, request, scene->look);
  if (!world) return std::unexpected(world.error());
  const auto verdicts = judge(request, world->ledger, world->facts);
  if (!verdicts) return std::unexpected(verdicts.error());
  if (std::cmp_less(std::ranges::count_if(*verdicts, &Verdict::free), request.count))
    return std::unexpected(refused(request, *verdicts, world->facts));
  if (auto read = leasing::read_topology_for(request, scene->source, *world); !read)
    return std::unexpected(read.error());
  return choose(request, *verdicts, world->facts.snapshot);
}

Result<std::vector<Verdict>> why(const Request& request) {
  auto scene = set_scene();
  if (!scene) return std::unexpected(scene.error());
  auto world = leasing::look(scene->source, *scene->place.store, request, scene->look);
  if (!world) return std::unexpected(world.error());
  return judge(request, world->ledger, world->facts);
}

Result<Lease> lease(const Request& request, std::string_view note) {
  auto scene = set_scene();
  if (!scene) return std::unexpected(scene.error());
  const leasing::TicketWords words{sys::process_command(::getpid()), std::string(note), ""};
  auto acquired = leasing::acquire(scene->source, *scene->place.store, request, scene->look, words);
  if (!acquired) return std::unexpected(acquired.error());
  if (const auto* refusal = std::get_if<leasing::Refused>(&*acquired))
    return std::unexpected(refused(request, refusal->verdicts, refusal->world.facts));
  return Lease(std::make_unique<Lease::Body>(std::get<leasing::HeldLease>(std::move(*acquired))));
}

}  // namespace berth
