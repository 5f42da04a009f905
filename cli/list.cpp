#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "berth/cli/command.h"
#include "berth/cli/question.h"
#include "berth/core/units.h"
#include "berth/render/json.h"
#include "berth/render/listing.h"

namespace berth::cli {
namespace {

constexpr std::string_view kAbout =
    "A line a GPU: memory in use, utilisation, temperature, power, the number of processes on it, and its "
    "state. "
    "free: a request for one whole GPU could have it. leased: somebody has it through Berth. outsider: "
    "somebody "
    "computes on it without a lease. hidden holder: memory is in use that no listed process explains. "
    "draining: a "
    "lease has ended, and its memory is not back yet.";

constexpr std::int64_t kDefaultIntervalSeconds = 2;

class List : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.about = kAbout;
    syntax.options.push_back(
        {"Options", 0, "json", "", "as JSON (docs/schema/list.json)", {}, raise_flag(json_)});
    syntax.options.push_back({"Options",
                              'w',
                              "watch",
                              "[SECS]",
                              "again every SECS seconds (default 2)",
                              {},
                              [this](std::string_view value) -> Result<void> {
                                const auto seconds =
                                    value.empty() ? kDefaultIntervalSeconds : seconds_from_text(value);
                                if (!seconds) return std::unexpected(seconds.error());
                                if (*seconds < 1) return fail(ErrorCode::usage, "must be a second or more");
                                interval_s_ = *seconds;
                                return {};
                              }});
    syntax.options.push_back(source_option(options_.source));
    return syntax;
  }

  Result<Output> run(Environment& environment, const std::vector<std::string>&) override {
    options_.ignore_mask = true;  // a listing shows the machine, whatever this shell may use
    if (interval_s_) return watch(environment);
    return look(environment, render::Layout::lines);
  }

 private:
  Result<Output> look(Environment& environment, render::Layout layout) {
    const auto world =
        look_at_machine(environment, options_, json_ ? readings_for_listing() : render::readings_for_table());
    if (!world) return std::unexpected(world.error());
    const auto verdicts = judge(options_.request, world->ledger, world->facts);
    if (!verdicts) return std::unexpected(verdicts.error());
    const render::Listing listing{world->facts, world->ledger, *verdicts};
    Output output;
    output.out = json_ ? render::listing_json(listing, layout)
                       : render::listing_table(listing, Environment::style_of(1));
    output.err = notes_on(*world);
    if (world->facts.snapshot.devices.empty()) output.err += "berth: the driver works, and lists no GPU\n";
    return output;
  }

  /// Goes on until it is interrupted or nobody reads.
  Result<Output> watch(Environment& environment) {
    const bool terminal = Environment::style_of(1).colour && !json_;
    while (true) {
      auto output = look(environment, render::Layout::line);
      if (!output) return output;
      // Home, each line cleared to its end, then all below: the screen does not flicker as it would if it
      // were wiped first.
      if (terminal) output->out = on_screen(output->out + "\n" + output->err);
      if (!terminal && !output->err.empty()) write_error(output->err);
      if (auto written = write_all(1, output->out); !written) return std::unexpected(written.error());
      ::poll(nullptr, 0, static_cast<int>(std::min<std::int64_t>(*interval_s_, 86'400) * 1000));
    }
  }

  static std::string on_screen(std::string_view text) {
    std::string screen = "\x1b[H";
    for (const char c : text) {
      if (c == '\n') screen += "\x1b[K";
      screen += c;
    }
    return screen + "\x1b[J";
  }

  RequestOptions options_;
  bool json_ = false;
  std::optional<std::int64_t> interval_s_;
};

}  // namespace

std::unique_ptr<Command> make_list() {
  return std::make_unique<List>();
}

}  // namespace berth::cli
