#include "berth/base/version.h"
#include "berth/command/command.h"
#include "berth/command/request_options.h"
#include "berth/source/probe/probe.h"

namespace berth::cli {
namespace {

/// The child that loads the driver: requests come in on its standard input, snapshots go out on its
/// output.
class ProbeCommand : public command::Command {
 public:
  command::Syntax syntax() override {
    command::Syntax syntax;
    syntax.arguments = "[SOURCE]";
    return syntax;
  }
  Result<command::Output> run(command::Environment&, const std::vector<std::string>& words) override {
    const auto expected = words.empty() ? std::nullopt : source::source_kind_from_text(words.front());
    source::run_probe(0, 1, expected.value_or(source::SourceKind::kAutomatic), version());
  }
};

}  // namespace

BERTH_COMMAND(make_probe, ProbeCommand);

}  // namespace berth::cli
