#include "berth/command/command.h"
#include "berth/command/field_options.h"
#include "berth/command/messages.h"
#include "berth/lease/session.h"
#include "berth/supervise/compliance_look.h"
#include "berth/verdict/compliance.h"
#include "berth/view/answers_json.h"
#include "berth/view/compliance.h"

namespace berth::cli {
namespace {

constexpr std::string_view kVerifyAbout =
    "Looks once whether the job of a lease computes on the GPUs of the lease and on no others, and "
    "says which process is on which GPU. Status 0: so it is. Status 1: it computes on a GPU that it "
    "did not lease, or Berth cannot tell. Status 75: it computes on no GPU at this moment.\n"
    "\n"
    "The last digits of an id, as `berth list -l` shows them, are enough. Without ID: the lease that "
    "this shell is in.";

int status_of(Compliance compliance) {
  switch (compliance) {
    case Compliance::keeps:
      return 0;
    case Compliance::idle:
      return outcome_of(ErrorCode::not_now).exit_status;
    case Compliance::strays:
    case Compliance::unknown:
      break;
  }
  return outcome_of(ErrorCode::failure).exit_status;
}

class Verify : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[ID]";
    syntax.words_command = "__leases";
    syntax.about = kVerifyAbout;
    syntax.flag("Options", "json", "as JSON (docs/schema/verify.json)", json_);
    syntax.add(command::source_option(source_));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    BERTH_LET(const auto look, supervise::look_at_compliance(environment, words, source_));
    const ComplianceReport report = compliance_of(look.lease, look.world.ledger, look.world.facts);
    const view::JobCompliance job{look.lease, look.name, look.world.facts.snapshot, report,
                                  look.world.assumed};
    return command::Output{
        .out = json_ ? view::verify_json(job) : view::compliance_text(job, command::Environment::style_of(1)),
        .err = command::as_lines(leasing::notes_on(look.world)),
        .status = status_of(report.compliance)};
  }

 private:
  bool json_ = false;
  source::SourceKind source_ = source::SourceKind::kAutomatic;
};

}  // namespace

BERTH_COMMAND(make_verify, Verify);

}  // namespace berth::cli
