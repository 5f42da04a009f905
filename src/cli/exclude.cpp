#include <unistd.h>

#include "berth/command/command.h"
#include "berth/command/open_session.h"
#include "berth/lease/exclusions.h"
#include "berth/request/selector.h"
#include "berth/site/site_file.h"

namespace berth::cli {
namespace {

constexpr std::string_view kExcludeAbout =
    "Takes these GPUs out: from now on Berth grants them to nobody, also after a reboot, and everybody is "
    "told the reason. Leases that are there go on. It is root's way to do what [[excluded]] in the site "
    "file does; `berth include` by root ends it. GPU: an index, a UUID or the start of one.\n"
    "\n"
    "    sudo berth exclude 3 --because \"memory errors; the repair is on Friday\"";

class Exclude : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "GPU...";
    syntax.about = kExcludeAbout;
    syntax.text("Options", "because", "TEXT", "why, for all who ask for a GPU", because_);
    syntax.add(command::source_option(options_.source));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.empty() || because_.empty())
      return fail(ErrorCode::usage, "exclude which GPU, and why? berth exclude GPU... --because TEXT");
    BERTH_LET(auto domain, command::find_domain());
    BERTH_LET(const auto session,
              command::open_session_at(leasing::machine_around(std::move(domain)), environment, options_));
    BERTH_LET(const auto world, session.look(Request{}));
    BERTH_LET(const auto uuids, uuids_named(words, world.facts.snapshot));
    const auto excluded = leasing::exclude(site::standard_site_file_paths().excluded, uuids, because_);
    if (!excluded && excluded.error().os_error != 0 && ::geteuid() != 0)
      return std::unexpected(
          context(excluded.error(), "only root takes a GPU from everybody: sudo berth exclude"));
    BERTH_DO(excluded);
    return command::Output{.out =
                               fmt::format("excluded GPU {} for all users; `sudo berth include` ends that\n",
                                           device_labels(uuids, world.facts.snapshot))};
  }

 private:
  std::string because_;
  command::RequestOptions options_;
};

}  // namespace

BERTH_COMMAND(make_exclude, Exclude);

}  // namespace berth::cli
