#include "berth/base/version.h"
#include "berth/command/command.h"
#include "berth/command/field_options.h"
#include "berth/source/probe/probe.h"

namespace berth::cli {
namespace {

/// The child that loads the driver: requests come in on its standard input, snapshots go out on its
/// output.
class ProbeCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "[SOURCE]"; }
  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    const auto expected = words.empty() ? std::nullopt : source::source_kind_from_text(words.front());
    source::run_probe(0, 1, expected.value_or(source::SourceKind::kAutomatic), version());
  }
};

}  // namespace

BERTH_COMMAND(make_probe, ProbeCommand);

}  // namespace berth::cli
