#include "berth/cli/question.h"

#include <fmt/format.h>

#include <cstdlib>

#include "berth/lease/place.h"
#include "berth/lease/site_file.h"
#include "berth/render/text.h"

namespace berth::cli {

void tell(const std::string& sentence) {
  write_error(fmt::format("berth: {}\n", render::printable(sentence)));
}

std::optional<std::string> variable_if_set(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

Result<leasing::LookOptions> look_options(const RequestOptions& options, ReadingSet also_read) {
  BERTH_LET(auto files, leasing::read_site_files(leasing::standard_site_file_paths()));
  leasing::LookOptions look;
  look.policy = std::move(files.policy);
  if (!options.ignore_mask) look.mask = variable_if_set("CUDA_VISIBLE_DEVICES");
  look.device_order = variable_if_set("CUDA_DEVICE_ORDER");
  look.also = also_read;
  return look;
}

Result<leasing::Place> find_place(leasing::LookOptions& look) {
  auto place = leasing::find_place(tell);
  if (!place) return place;
  for (const std::string& warning : place->warnings) tell(warning);
  look.within = place->within;
  if (!place->believe_mask) look.mask.reset();
  return place;
}

Result<leasing::World> look_at_machine(Environment& environment, const RequestOptions& options,
                                       ReadingSet also_read) {
  BERTH_LET(auto look, look_options(options, also_read));
  BERTH_LET(const auto place, find_place(look));
  BERTH_LET(const auto source, environment.source(options.source));
  return leasing::look(*source, *place.store, options.request, look);
}

std::string notes_on(const leasing::World& world) {
  std::string text;
  const auto add = [&](std::string_view note) {
    text += fmt::format("berth: {}\n", render::printable(note));
  };
  const Snapshot& snapshot = world.facts.snapshot;
  if (snapshot.stale_reason) add(fmt::format("this is an old answer: {}", *snapshot.stale_reason));
  for (const std::string& note : snapshot.notes) add(note);
  if (world.facts.mask) {
    for (const std::string& note : world.facts.mask->notes) add(note);
  }
  for (const OddTicket& odd : world.ledger.odd) {
    add(fmt::format("the ticket {} of uid {} cannot be understood: {}", odd.name, odd.uid, odd.reason));
  }
  return text;
}

}  // namespace berth::cli
