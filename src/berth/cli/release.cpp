#include <fmt/format.h>

#include "berth/cli/command.h"
#include "berth/cli/named_lease.h"
#include "berth/core/units.h"
#include "berth/lease/release.h"

namespace berth::cli {
namespace {

constexpr std::string_view kReleaseAbout =
    "Asks the process that holds the lease to end (SIGTERM): for a job that is `berth run`, which passes it "
    "on "
    "to its command; for a claim the keeper. Returns when the lease has ended. Where that does not happen it "
    "names the processes that still hold it, with status 124. Only the owner and root may.\n"
    "\n"
    "The last digits of an id are enough if no other lease ends in them. Without ID: the lease that this "
    "shell "
    "is in.";

class Release : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.arguments = "[ID]";
    syntax.words_command = "__leases mine";
    syntax.about = kReleaseAbout;
    syntax.options.push_back({"Options",
                              0,
                              "wait",
                              "TIME",
                              "how long it may take to end (default 10s)",
                              {},
                              [this](std::string_view value) -> Result<void> {
                                BERTH_LET(const auto seconds, seconds_from_text(value));
                                wait_s_ = seconds;
                                return {};
                              }});
    return syntax;
  }

  Result<Output> run(Environment&, const std::vector<std::string>& words) override {
    BERTH_LET(const auto lease, find_named_lease(words));
    BERTH_DO(leasing::ask_to_release(*lease.place.store, lease.ticket, std::chrono::seconds(wait_s_)));
    return Output{};
  }

 private:
  std::int64_t wait_s_ = 10;
};

}  // namespace

std::unique_ptr<Command> make_release() {
  return std::make_unique<Release>();
}

}  // namespace berth::cli
