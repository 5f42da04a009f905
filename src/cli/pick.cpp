#include <unistd.h>

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "berth/answers/answers.h"
#include "berth/base/units.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/lease/domain.h"
#include "berth/request/job_mask.h"
#include "berth/supervise/claim_keeper.h"
#include "berth/supervise/lease_options.h"
#include "berth/view/answers_json.h"
#include "berth/view/refusal.h"

namespace berth::cli {
namespace {

constexpr std::string_view kPickAbout =
    "Prints the value for CUDA_VISIBLE_DEVICES (AMD GPUs: ROCR_VISIBLE_DEVICES) and nothing else. If "
    "it fails, it prints -1, which shows a program no GPU, so that a script that ignores the status "
    "does not run on all GPUs.\n"
    "\n"
    "    export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$(berth pick -n 2)\n"
    "\n"
    "It looks and holds nothing: another user who picks next may get the same GPUs. `berth run` "
    "leases them; --hold 30s leases them for 30 s, in which your program can start to use them.";

class Pick : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kPickAbout;
    add_request_options(syntax, options_);
    syntax.add(
        supervise::time_option("judge it as a job with this time limit (30m)", options_.request));
    syntax.option("Output", "hold", "TIME", "lease them for this long: a process stays behind and holds them",
                  [this](std::string_view value) -> Result<void> {
                    BERTH_LET(const auto seconds, seconds_from_text(value));
                    BERTH_DO(check_time(seconds));
                    hold_s_ = options_.request.time_s = seconds;
                    return {};
                  });
    syntax.flag("Output", "json", "as JSON (docs/schema/pick.json)", json_);
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(options_));
    if (hold_s_) return supervise::leave_keeper(environment, std::nullopt, [&] { return hold(environment); });
    BERTH_LET(const auto session, open_session(environment, options_));
    BERTH_LET(const auto answer, session.pick(options_.request));
    if (const auto* refusal = std::get_if<leasing::Refusal>(&answer))
      return std::unexpected(in_words(*refusal));
    return answer_with(std::get<leasing::Picked>(answer), "", 0);
  }

  std::string out_of_failure(int /*exit_status*/, std::span<char* const> words) const override {
    const bool as_json = std::ranges::any_of(words, [](std::string_view word) { return word == "--json"; });
    return as_json || ::isatty(STDOUT_FILENO) == 1 ? "" : "-1\n";
  }

 private:
  static Error in_words(const leasing::Refusal& refusal) {
    return leasing::in_words(refusal, command::Environment::style_of(STDERR_FILENO));
  }

  Result<supervise::Kept> hold(command::Environment& environment) const {
    BERTH_LET(const auto session, open_session(environment, options_));
    leasing::TicketWords words{fmt::format("pick --hold {}", duration_for_people(*hold_s_)), "",
                               view::request_in_words(options_.request)};
    words.kept = true;
    BERTH_LET(auto answer, session.acquire(options_.request, words));
    if (const auto* refusal = std::get_if<leasing::Refusal>(&answer))
      return std::unexpected(in_words(*refusal));
    auto& lease = std::get<leasing::HeldLease>(answer);
    const Ticket& ticket = lease.ticket();
    command::Output output = answer_with({lease.world(), {ticket.devices, lease.notes()}}, to_text(ticket.id),
                                         ticket.since_s + *hold_s_);
    return supervise::Kept{std::move(lease), std::move(output)};
  }

  /// `lease`: holds them, until then.
  command::Output answer_with(const leasing::Picked& picked, const std::string& lease,
                              std::int64_t held_until_s) const {
    const Choice& choice = picked.choice;
    const Snapshot& snapshot = picked.world.facts.snapshot;
    const JobMask mask =
        job_mask(choice.uuids, snapshot, options_.uuids || picked.world.facts.policy.mask == MaskForm::uuid);
    std::vector<std::string> notes = leasing::notes_on(picked);
    // Mostly the models are alike, and then no variable matters.
    if (numbering_note(mask, snapshot, {})) {
      if (auto note = numbering_note(mask, snapshot, leasing::inherited_masks()))
        notes.push_back(*std::move(note));
    }
    command::Output output;
    output.out =
        json_ ? view::pick_json({choice, snapshot, mask, notes, lease, held_until_s}) : mask.visible + "\n";
    output.err = command::as_lines(notes);
    return output;
  }

  command::RequestOptions options_;
  std::optional<std::int64_t> hold_s_;
  bool json_ = false;
};

}  // namespace

BERTH_COMMAND(make_pick, Pick);

}  // namespace berth::cli
