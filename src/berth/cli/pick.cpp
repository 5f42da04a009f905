#include <fmt/format.h>

#include "berth/cli/choice.h"
#include "berth/cli/command.h"
#include "berth/cli/hold.h"
#include "berth/core/select.h"
#include "berth/core/units.h"
#include "berth/lease/place.h"
#include "berth/render/explain.h"
#include "berth/render/json.h"

namespace berth::cli {
namespace {

constexpr std::string_view kPickAbout =
    "Prints the value for CUDA_VISIBLE_DEVICES and nothing else.\n"
    "\n"
    "    export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$(berth pick -n 2)\n"
    "\n"
    "It looks and holds nothing: the next who picks may get the same GPUs. `berth run` leases them; --hold "
    "30s "
    "leases them for 30 s, in which your program can start to use them.";

/// The devices, and the lease that holds them if one was asked for.
struct Picked {
  leasing::World world;
  Choice choice;
  std::string lease;
  std::int64_t held_until_s = 0;
};

class Pick : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.about = kPickAbout;
    add_request_options(syntax, options_);
    syntax.options.push_back({"Output",
                              0,
                              "hold",
                              "TIME",
                              "lease them for so long: a process stays behind that does",
                              {},
                              [this](std::string_view value) -> Result<void> {
                                BERTH_LET(const auto seconds, seconds_from_text(value));
                                if (seconds < 1) return fail(ErrorCode::usage, "must be a second or more");
                                hold_s_ = seconds;
                                return {};
                              }});
    syntax.options.push_back(
        {"Output", 0, "json", "", "as JSON (docs/schema/pick.json)", {}, raise_flag(json_)});
    return syntax;
  }

  Result<Output> run(Environment& environment, const std::vector<std::string>&) override {
    BERTH_DO(settle(options_));
    if (hold_s_)
      return leave_keeper(environment, {std::chrono::seconds(*hold_s_), {}},
                          [&] { return hold(environment); });
    BERTH_LET(const auto picked, look(environment));
    return answer(picked);
  }

 private:
  Result<Picked> look(Environment& environment) const {
    BERTH_LET(auto world,
              look_at_machine(environment, options_, readings_in_case_of_choice(options_.request)));
    BERTH_LET(auto choice, choose_from(environment, world, options_));
    return Picked{std::move(world), std::move(choice), "", 0};
  }

  Result<Kept> hold(Environment& environment) const {
    BERTH_LET(auto look, look_options(options_, {}));
    BERTH_LET(const auto place, find_place(look));
    BERTH_LET(const auto source, environment.source(options_.source));
    leasing::TicketWords words{fmt::format("pick --hold {}", duration_for_people(*hold_s_)), "",
                               render::request_in_words(options_.request)};
    words.kept = true;
    auto acquired = leasing::acquire(*source, *place.store, options_.request, look, words);
    environment.end_probe();
    if (!acquired) return std::unexpected(acquired.error());
    if (const auto* no = std::get_if<leasing::Refused>(&*acquired)) {
      return std::unexpected(refused(options_.request, no->verdicts, no->world.facts,
                                     looser_requests(options_.request, no->world)));
    }
    auto& lease = std::get<leasing::HeldLease>(*acquired);
    Choice choice{{}, lease.notes()};
    for (const Device* device : lease.devices()) choice.uuids.push_back(device->uuid);
    Output answered = answer(
        {lease.world(), std::move(choice), to_text(lease.ticket().id), lease.ticket().since_s + *hold_s_});
    return Kept{std::move(lease), std::move(answered)};
  }

  Output answer(const Picked& picked) const {
    const Snapshot& snapshot = picked.world.facts.snapshot;
    const std::string visible = visible_devices(picked.choice, snapshot, options_.uuids);
    std::vector<std::string> notes = picked.choice.notes;
    if (counts_by_index(picked.choice, snapshot, options_.uuids) &&
        numbering_is_ambiguous(snapshot, variable_if_set("CUDA_DEVICE_ORDER"))) {
      notes.emplace_back(
          "the GPUs here are of different models, and CUDA numbers them by speed unless "
          "CUDA_DEVICE_ORDER=PCI_BUS_ID is set; set it, or use --ids uuid");
    }
    Output output;
    output.out =
        json_
            ? render::pick_json({picked.choice, snapshot, visible, notes, picked.lease, picked.held_until_s})
            : visible + "\n";
    output.err = notes_on(picked.world);
    for (const std::string& note : notes) output.err += fmt::format("berth: {}\n", note);
    return output;
  }

  RequestOptions options_;
  std::optional<std::int64_t> hold_s_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_pick() {
  return std::make_unique<Pick>();
}

}  // namespace berth::cli
