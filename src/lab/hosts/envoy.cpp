// `berth __envoy` is what ssh starts on a host for `berth … --anywhere` on another machine
// (src/lab/hosts/envoy_messages.h has the messages, docs/machines.md their order). It waits in
// the queue of this host with an ordinary ticket. When the ticket is granted, the envoy asks before
// it starts the command. Without a yes it starts nothing.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "berth/answers/answers.h"
#include "berth/base/error.h"
#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/envoy_link.h"
#include "berth/hosts/envoy_messages.h"
#include "berth/machines/host.h"
#include "berth/queue/standing.h"
#include "berth/source/source.h"
#include "berth/supervise/compliance_check.h"
#include "berth/supervise/run.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/verdict/verdict.h"
#include "berth/view/answers_json.h"
#include "berth/view/refusal.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;

// If the machine of the caller sleeps, the caller keeps a GPU from others for this long at most.
constexpr auto kPatienceForYes = 30s;
// Shorter than a caller waits for an answer (kPatienceForAnswer).
constexpr auto kPatienceForCall = 35s;

struct Question {
  EnvoyAsk ask;
  api::LeaseAsk lease;
};

// The variables that the caller passes on. Those for the probe were settled before.
void take_environment(const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    const std::size_t end = variable.find('=');
    if (end != std::string::npos && end > 0)
      ::setenv(variable.substr(0, end).c_str(), variable.c_str() + end + 1, 1);
  }
}

std::string all_of(const sys::Descriptor& file) {
  std::string text;
  std::array<char, 1 << 14> buffer;
  ssize_t got = 0;
  while ((got = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  return text;
}

// As the user of this login could call it.
Result<Called> call_program(const std::vector<std::string>& words) {
  const sys::Descriptor out = sys::memory_file("berth-out");
  const sys::Descriptor err = sys::memory_file("berth-err");
  if (!out || !err) return sys::fail_errno("making room for what it says");
  BERTH_LET(std::string program, command::program_path());
  const sys::Command command{
      .program = std::move(program), .arguments = words, .output = out.get(), .error = err.get()};
  BERTH_LET(auto child, sys::Child::spawn(command));
  const auto ending = child.wait(kPatienceForCall);
  if (!ending) {
    child.kill(SIGTERM);
    return fail(ErrorCode::timed_out, "berth {} there has not ended", words.front());
  }
  return Called{shell_status(*ending), all_of(out), all_of(err)};
}

Result<MachineReport> report_of_machine(command::Environment& environment) {
  BERTH_LET(auto domain, command::find_domain());
  command::RequestOptions options;
  options.mask = MaskUse::ignore;
  BERTH_LET(const auto session,
            open_session_at(leasing::machine_around(std::move(domain)), environment, options));
  BERTH_LET(const auto world, session.look(options, readings_for_listing()));
  BERTH_LET(const auto verdicts, leasing::judge_each_in_queue(world));
  const Ledger ledger = listed_part(world.ledger);
  auto waiting = listed_standings(world.ledger, ledger, world.facts, world.stopped, world.looked_at);
  const view::Style style = answers::plain_style();
  for (Standing& one : waiting) one.reason = view::reason(one, world.facts.snapshot, style);
  const IdleTimes idle;
  const view::Listing listing{world.facts, ledger, verdicts, world.assumed, idle};
  return MachineReport{view::listing_json(listing, view::Layout::line),
                       view::queue_json(waiting, ledger.unlisted, view::Layout::line)};
}

Offer offer_of(const leasing::Explained& found) {
  Offer offer;
  offer.possible = found.possible;
  offer.free = static_cast<std::size_t>(std::ranges::count_if(found.verdicts, &Verdict::free));
  offer.at_once = !found.standing && offer.free >= found.request.count;
  const std::int64_t now_s = std::time(nullptr);
  Standing standing = found.standing.value_or(Standing{});
  if (found.standing) {
    offer.ahead = standing.position - 1;  // the first has the position 1
    if (standing.starts_at_s) offer.starts_in_s = *standing.starts_at_s - now_s;
  } else if (!offer.at_once) {
    offer.starts_in_s = seconds_until_enough(found.request.count, found.verdicts, found.world.ledger,
                                             found.world.facts, now_s);
  }
  standing.verdicts = found.verdicts;
  offer.reason = view::reason(standing, found.world.facts.snapshot, answers::plain_style());
  if (found.possible < found.request.count) {
    if (const auto can = check_possible(found.request, found.world.facts); !can)
      offer.reason = can.error().message;
  }
  return offer;
}

class Envoy : public command::Command {
 public:
  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    link_.begin();
    // If the hello cannot be sent, the caller is gone.
    if (!link_.say(encode(EnvoyHello{std::string(version())}))) return command::Output{};
    auto status = answer(environment);
    if (status) return command::Output{.status = *status};
    (void)link_.say(api::encode(api::LeaseMessage(api::LeaseRefused{status.error(), {}})));
    return command::Output{.status = outcome_of(status.error().code).exit_status};
  }

 private:
  Result<int> answer(command::Environment& environment) {
    BERTH_LET(const auto asked, hear_question());
    if (!asked) return 0;
    question_ = *asked;
    // A look may hang with the driver or a disk, and nobody else here would end it.
    BERTH_DO(link_.end_with_caller());
    if (question_.ask.mode == EnvoyMode::look) {
      BERTH_LET(const auto report, report_of_machine(environment));
      BERTH_DO(link_.say(encode(report)));
      return 0;
    }
    BERTH_DO(source::check_version(question_.lease.version, version()));
    if (question_.ask.mode == EnvoyMode::call) {
      if (question_.ask.words.empty()) return fail(ErrorCode::usage, "call what?");
      BERTH_LET(const auto called, call_program(question_.ask.words));
      BERTH_DO(link_.say(encode(called)));
      return 0;
    }
    take_environment(question_.lease.variables);
    BERTH_LET(static_cast<command::RequestOptions&>(options_), request_options());
    if (question_.ask.mode == EnvoyMode::offer) {
      BERTH_LET(const bool joins, offers(environment));
      if (!joins) return 0;
    }
    return wait_in_queue(environment);
  }

  Result<std::optional<Question>> hear_question() {
    BERTH_LET(const auto first, link_.hear(std::nullopt));
    if (!first) return std::nullopt;
    BERTH_LET(auto ask, decode_envoy_ask(*first));
    BERTH_LET(const auto second, link_.hear(std::nullopt));
    if (!second) return std::nullopt;
    BERTH_LET(auto lease, api::decode_ask(*second));
    return Question{std::move(ask), std::move(lease)};
  }

  Result<command::RequestOptions> request_options() const {
    command::RequestOptions options;
    static_cast<Request&>(options) = question_.lease.request;
    options.said_count = options.count;
    options.uuids = question_.ask.ids == "uuid";
    if (!question_.ask.source.empty()) {
      const auto kind = source::source_kind_from_text(question_.ask.source);
      if (!kind) return fail(ErrorCode::usage, "its Berth knows no such source");
      options.source = *kind;
    }
    BERTH_DO(check(options));
    return options;
  }

  // True: the caller wants it to join.
  Result<bool> offers(command::Environment& environment) {
    BERTH_LET(const auto session, open_session(environment, options_));
    BERTH_LET(const auto found, session.why(options_));
    environment.end_probe();
    Offer offer = offer_of(found);
    if (const std::string& near = question_.ask.near; !near.empty())
      offer.near = ::access(near.c_str(), F_OK) == 0;
    BERTH_DO(link_.say(encode(offer)));
    BERTH_LET(const auto word, link_.hear(std::nullopt));
    return word && decode_caller_word(*word) == CallerWord::join;
  }

  Result<int> wait_in_queue(command::Environment& environment) {
    BERTH_DO(enter_folder());
    options_.shell = question_.ask.shell;
    options_.command = options_.shell ? std::vector{supervise::users_shell()} : question_.ask.words;
    if (options_.command.empty()) return fail(ErrorCode::usage, "run which command?");
    if (const auto missing = sys::cannot_start(options_.command))
      return fail(ErrorCode::failure, missing->message);
    BERTH_LET(options_.first_look, supervise::time_of_first_look());
    fill_in_lease();
    options_.end_with_command = question_.ask.end_with_command;
    options_.quiet = true;  // the caller says what it has got
    options_.hooks.before_start = [this](const leasing::HeldLease& lease) { return ask_to_start(lease); };
    options_.hooks.after_end = [this](const RunEnd& end, const auto&) { ending_ = end.process; };
    options_.hooks.at_last = [this] { tell_end(); };
    return run_leased(environment, options_);
  }

  Result<void> enter_folder() const {
    const std::string& folder = question_.ask.folder;
    if (folder.empty() || ::chdir(folder.c_str()) == 0) return {};
    const Error error =
        sys::system_error(errno, fmt::format("the folder {} cannot be entered there", folder));
    return fail(ErrorCode::failure, error.message + "; name one that is on every host: --folder PATH");
  }

  void fill_in_lease() {
    supervise::LeaseOptions& lease = options_;
    lease.note = question_.lease.note;
    lease.origin = question_.ask.origin.substr(0, kLongestOrigin);
    lease.in_background = question_.ask.patient;
    if (const auto& wait = question_.lease.wait) {
      lease.wait_s = std::chrono::duration_cast<std::chrono::seconds>(*wait).count();
      lease.no_wait = *lease.wait_s == 0;
    }
    lease.on_wait = {[this](const Standing& standing, const Snapshot& snapshot) {
                       link_.mention_record(api::encode(
                           api::LeaseMessage(view::told(standing, snapshot, answers::plain_style()))));
                     },
                     false};
  }

  Result<void> ask_to_start(const leasing::HeldLease& lease) {
    link_.stop_watching();
    const Ticket& ticket = lease.ticket();
    BERTH_LET(const Offer had, what_was_free_for(lease));
    BERTH_DO(link_.say(encode(had)));
    BERTH_DO(link_.say(api::encode(api::LeaseMessage(lease.world().facts.snapshot))));
    BERTH_DO(link_.say(api::encode(
        api::LeaseMessage(api::LeaseGranted{ticket.id, "", "", ticket.devices, leasing::notes_on(lease)}))));
    BERTH_LET(const auto word, link_.hear(kPatienceForYes));
    if (!word || decode_caller_word(*word) != CallerWord::yes) return fail(ErrorCode::failure, "let go");
    begun_ = true;
    return link_.give_to_command(encode(CommandBegun{}));
  }

  // The devices that were free when the request was granted, with those that it got. If several
  // hosts grant, the caller chooses among them by this number.
  Result<Offer> what_was_free_for(const leasing::HeldLease& lease) const {
    const leasing::World& world = lease.world();
    const std::vector<std::string>& got = lease.ticket().devices;
    BERTH_LET(const auto verdicts, judge(question_.lease.request, world.ledger, world.facts));
    const auto others = std::ranges::count_if(verdicts, [&](const Verdict& verdict) {
      return verdict.free() && std::ranges::find(got, verdict.uuid) == got.end();
    });
    Offer offer;
    offer.free = got.size() + static_cast<std::size_t>(others);
    return offer;
  }

  void tell_end() const {
    if (begun_) link_.say_last(encode(ending_, question_.ask.token));
  }

  EnvoyLink link_;
  Question question_;
  supervise::RunOptions options_;
  ProcessEnd ending_;
  bool begun_ = false;
};

}  // namespace

BERTH_COMMAND(make_envoy, Envoy);

}  // namespace berth::hosts
