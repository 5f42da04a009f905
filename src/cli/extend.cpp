#include <unistd.h>

#include <utility>

#include "berth/base/fail.h"
#include "berth/base/units.h"
#include "berth/command/command.h"
#include "berth/command/field_options.h"
#include "berth/command/messages.h"
#include "berth/command/named_lease.h"
#include "berth/command/open_session.h"
#include "berth/lease/look.h"
#include "berth/lease/session.h"
#include "berth/queue/extension.h"
#include "berth/request/request.h"
#include "berth/site/site_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/verdict/device_clauses.h"
#include "berth/verdict/limits.h"
#include "berth/view/text.h"

namespace berth::cli {
namespace {

constexpr std::string_view kExtendAbout =
    "Makes a lease that has a time limit (--time) last longer, by TIME, such as 2h. The holder "
    "checks for an extension before it warns and before it ends the job, so you can extend until "
    "then. Only the owner and root may extend a lease, and not beyond the maximum of the site. If "
    "somebody waits whose start would move back, it refuses; root can extend the leases of others "
    "in any case.\n"
    "\n"
    "The last digits of an id are enough if no other lease ends in them. Without ID: the lease that "
    "this shell is in.";

// The limits are of the user who has the lease: root may go beyond them.
std::optional<Limit> longest_for_caller(const command::NamedLease& lease, const SitePolicy& policy) {
  leasing::LookOptions options;
  options.policy = policy;
  if (!lease.domain.within && ::geteuid() == lease.ticket.uid) options.asker = leasing::asker_here();
  return longest_lease(policy.most_time_s, leasing::limits_now(options));
}

Result<std::int64_t> longer_time(const Ticket& lease, std::string_view name, std::int64_t more_s,
                                 const std::optional<Limit>& longest) {
  if (!lease.time_s)
    return fail(ErrorCode::failure, "the lease {} has no time limit, so there is nothing to extend", name);
  const std::int64_t time_s = *lease.time_s + more_s;
  const std::int64_t most_s = longest ? longest->most : kLongestTimeS;
  if (time_s <= most_s) return time_s;
  return fail(ErrorCode::impossible,
              "the lease {} has {}, and with {} more it would have {}: a lease {} lasts {} at most{}", name,
              time_for_people(*lease.time_s), time_for_people(more_s), time_for_people(time_s),
              longest ? "here" : "with a time", time_for_people(most_s),
              longest ? fmt::format(" ({} in the site file)", longest->rule) : "");
}

// A request that does not wait, and a machine that does not answer, prevent no extension.
Result<void> delays_nobody(const leasing::Session& session, const Ticket& lease, std::int64_t time_s) {
  BERTH_LET(const auto books, session.domain().store->look());
  if (count_waiting(books.ledger) == 0) return {};
  const auto world = session.look(Request{});
  session.source().close();
  if (!world) {
    command::print_message(
        fmt::format("whether somebody would start later cannot be said: {}", world.error().message));
    return {};
  }
  if (const auto passed = passed_by_its_limit(world->ledger, world->stopped, lease.id)) {
    const Ticket* waiter = find_ticket(world->ledger, *passed, TicketPhase::waiting);
    return fail(ErrorCode::not_now,
                "{} waits, and asked before you. Your request went first because its time limit is "
                "short, so the lease {} ends at its time. Save your work before, and ask for GPUs "
                "again",
                waiter == nullptr ? "somebody" : name_of(*waiter), short_name(world->ledger, lease.id));
  }
  const auto delayed =
      delayed_by_extension(world->ledger, world->facts, world->looked_at, world->stopped, lease.id, time_s);
  if (!delayed) return {};
  const Ticket* waiter = find_ticket(world->ledger, delayed->waiter, TicketPhase::waiting);
  return fail(ErrorCode::not_now,
              "{} waits and is to start about {}, and more time would delay that: the lease {} "
              "ends at its time. Save your work before, and ask for GPUs again",
              waiter == nullptr ? "somebody" : name_of(*waiter),
              view::clock_time(world->facts.booted_at_s + delayed->start_s,
                               command::Environment::style_of(STDERR_FILENO)),
              short_name(world->ledger, lease.id));
}

class Extend : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[ID] TIME";
    syntax.words_command = "__leases mine";
    syntax.about = kExtendAbout;
    options_.mask = MaskUse::ignore;
    syntax.add(command::source_option(options_.source));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.empty() || words.size() > 2)
      return fail(ErrorCode::usage, "extend which lease by how long? berth extend [ID] TIME");
    BERTH_LET(const auto more_s, seconds_from_text(words.back()));
    BERTH_DO(check_time(more_s));
    BERTH_LET(const auto files, site::read_site_files());
    BERTH_LET(auto lease, command::find_named_lease({words.begin(), words.end() - 1}));
    if (::geteuid() != 0 && ::geteuid() != lease.ticket.uid)
      return fail(ErrorCode::failure, "the lease {} is of {}: only its owner and root may extend it",
                  lease.name, sys::user_name(lease.ticket.uid));
    const auto longest = longest_for_caller(lease, files.policy);
    BERTH_LET(const auto time_s, longer_time(lease.ticket, lease.name, more_s, longest));
    BERTH_LET(const auto session, open_session_at(std::move(lease.domain), environment, options_));
    if (::geteuid() == lease.ticket.uid) BERTH_DO(delays_nobody(session, lease.ticket, time_s));
    Ticket extended = lease.ticket;
    BERTH_DO(session.domain().store->extend(extended.id, [&](const Ticket& ticket) {
      extended = ticket;
      auto longer = longer_time(ticket, lease.name, more_s, longest);
      if (longer) extended.time_s = *longer;
      return longer;
    }));
    const auto end_s = said_end_at_s(extended, sys::booted_at_s());
    return command::Output{
        .out = fmt::format("the lease {} now ends at {}\n", lease.name,
                           view::clock_time(end_s.value_or(0), command::Environment::style_of(1)))};
  }

 private:
  command::RequestOptions options_;
};

}  // namespace

BERTH_COMMAND(make_extend, Extend);

}  // namespace berth::cli
