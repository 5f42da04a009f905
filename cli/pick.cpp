#include <fmt/format.h>

#include "berth/cli/choice.h"
#include "berth/cli/command.h"
#include "berth/core/select.h"
#include "berth/render/explain.h"
#include "berth/render/json.h"

namespace berth::cli {
namespace {

constexpr std::string_view kAbout =
    "Prints the value for CUDA_VISIBLE_DEVICES and nothing else:\n"
    "\n"
    "    export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$(berth pick -n 2)\n"
    "\n"
    "It looks and holds nothing: the next who picks may get the same GPUs. `berth run` leases\n"
    "them, `--hold 30s` keeps them until your program has started.";

class Pick : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.about = kAbout;
    add_request_options(syntax, options_);
    syntax.options.push_back(
        {"Output", 0, "json", "", "as JSON (docs/schema/pick.json)", {}, raise_flag(json_)});
    return syntax;
  }

  Result<Output> run(Environment& environment, const std::vector<std::string>&) override {
    if (auto settled = settle(options_); !settled) return std::unexpected(settled.error());
    auto world = look_at_machine(environment, options_, {});
    if (!world) return std::unexpected(world.error());
    const auto choice = choose_from(environment, *world, options_);
    if (!choice) return std::unexpected(choice.error());
    return answer(*world, *choice);
  }

 private:
  Output answer(const leasing::World& world, const Choice& choice) const {
    const Snapshot& snapshot = world.facts.snapshot;
    const std::string visible = visible_devices(choice, snapshot, options_.uuids);
    std::vector<std::string> notes = choice.notes;
    if (counts_by_index(choice, snapshot, options_.uuids) &&
        numbering_is_ambiguous(snapshot, variable_if_set("CUDA_DEVICE_ORDER"))) {
      notes.emplace_back(
          "the GPUs here are of different models, and CUDA numbers them by speed unless "
          "CUDA_DEVICE_ORDER=PCI_BUS_ID is set; set it, or use --ids uuid");
    }
    Output output;
    output.out = json_ ? render::pick_json({choice, snapshot, visible, notes, "", 0}) : visible + "\n";
    output.err = notes_on(world);
    for (const std::string& note : notes) output.err += fmt::format("berth: {}\n", note);
    return output;
  }

  RequestOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_pick() {
  return std::make_unique<Pick>();
}

}  // namespace berth::cli
