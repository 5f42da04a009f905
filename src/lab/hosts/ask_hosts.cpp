#include "berth/hosts/ask_hosts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "berth/base/text.h"
#include "berth/hosts/channel.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/hosts/model/host_offer.h"
#include "berth/hosts/ssh.h"
#include "berth/sys/job_process.h"

namespace berth::hosts {
namespace {

struct AskedHost {
  std::optional<Channel> channel{};  ///< none: it is settled
  std::optional<Result<EnvoyMessage>> answer{};
};

/// All of one question, to each host.
class Round {
 public:
  Round(const EnvoyAsk& ask, const api::LeaseAsk& request) : is_look_(ask.mode == EnvoyMode::look) {
    question_ = encode(ask) + api::encode(request);
  }

  void open(const SshProgram& ssh, const std::vector<LabHost>& hosts) {
    for (const LabHost& host : hosts) {
      auto channel = Channel::open(host, ssh, false);
      AskedHost& asked = asked_.emplace_back();
      if (channel)
        asked.channel.emplace(*std::move(channel));
      else
        asked.answer = std::unexpected(channel.error());
    }
  }

  std::vector<AskedHost> listen() {
    std::vector<pollfd> nothing_else;
    while (true) {
      std::vector<Channel*> connected;
      for (AskedHost& asked : asked_)
        if (asked.channel) connected.push_back(&*asked.channel);
      if (connected.empty()) return std::move(asked_);
      wait_on(connected, nothing_else, next_deadline(connected));
      for (AskedHost& asked : asked_)
        if (asked.channel) hear(asked);
    }
  }

 private:
  static std::chrono::steady_clock::time_point next_deadline(const std::vector<Channel*>& channels) {
    auto next = std::chrono::steady_clock::time_point::max();
    for (const Channel* channel : channels)
      next = std::min(next, channel->opened_at() + patience_with(channel->has_greeted()));
    return next;
  }

  void hear(AskedHost& asked) const {
    Channel& channel = *asked.channel;
    while (auto message = channel.next_message())
      if (auto answer = take(channel, std::move(*message))) return settle(asked, *std::move(answer));
    // Nothing that is asked here changes anything there, so it can be asked again.
    if (channel.has_ended() && channel.is_shared() && channel.connect_alone()) return;
    if (channel.has_ended())
      settle(asked, std::unexpected(channel.why_ended()));
    else if (std::chrono::steady_clock::now() >= channel.opened_at() + patience_with(channel.has_greeted()))
      settle(asked, std::unexpected(why_silent(channel.host().name, channel.has_greeted())));
  }

  // nullopt: it goes on.
  std::optional<Result<EnvoyMessage>> take(Channel& channel, Result<EnvoyMessage> message) const {
    const auto* hello = message ? std::get_if<EnvoyHello>(&*message) : nullptr;
    if (hello == nullptr) return as_answer(std::move(message));
    // The report of a machine is checked when it is read, whatever version wrote it.
    if (const auto known = check_host_version(hello->version); !known && !is_look_)
      return std::unexpected(known.error());
    channel.send(question_);
    return std::nullopt;
  }

  static Result<EnvoyMessage> as_answer(Result<EnvoyMessage> message) {
    if (!message) return message;
    const auto* lease = std::get_if<api::LeaseMessage>(&*message);
    const auto* refused = lease != nullptr ? std::get_if<api::LeaseRefused>(lease) : nullptr;
    if (refused != nullptr) return std::unexpected(refused->error);
    return message;
  }

  static void settle(AskedHost& asked, Result<EnvoyMessage> answer) {
    asked.answer = std::move(answer);
    asked.channel->let_go();
    // It ends by itself while the others are listened to.
    asked.channel.reset();
  }

  bool is_look_;
  std::string question_;
  std::vector<AskedHost> asked_{};
};

}  // namespace

std::vector<Result<EnvoyMessage>> ask_hosts(const SshProgram& ssh, const std::vector<LabHost>& hosts,
                                            const EnvoyAsk& ask, const api::LeaseAsk& request) {
  Round round(ask, request);
  round.open(ssh, hosts);
  std::vector<Result<EnvoyMessage>> answers;
  for (AskedHost& each : round.listen()) answers.push_back(*std::move(each.answer));
  return answers;
}

namespace {

// The reason that one of our programs printed, without its name.
std::string failure_in(const Called& called) {
  constexpr std::string_view kOurs = "berth: ";
  std::string_view text = called.err;
  if (text.starts_with(kOurs)) text.remove_prefix(kOurs.size());
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return fmt::format("berth has ended there with status {}", called.exit_status);
  return std::string(text);
}

std::vector<Result<Called>> call_on_each(const SshProgram& ssh, const std::vector<LabHost>& hosts,
                                         const std::vector<std::string>& words) {
  EnvoyAsk ask;
  ask.mode = EnvoyMode::call;
  ask.words = words;
  std::vector<Result<Called>> all;
  for (auto& answer : ask_hosts(ssh, hosts, ask, lease_ask_of({}))) {
    if (!answer) {
      all.push_back(std::unexpected(std::move(answer).error()));
    } else if (auto* called = std::get_if<Called>(&*answer)) {
      all.push_back(std::move(*called));
    } else {
      all.push_back(fail(ErrorCode::failure, "it does not answer what it was asked"));
    }
  }
  return all;
}

}  // namespace

std::vector<Result<std::string>> documents_of(const std::vector<LabHost>& hosts,
                                              const std::vector<std::string>& words) {
  std::vector<Result<std::string>> all;
  for (auto& called : call_on_each(ssh_of_environment(), hosts, words)) {
    if (!called)
      all.push_back(std::unexpected(std::move(called).error()));
    else if (called->exit_status != 0)
      all.push_back(fail(ErrorCode::failure, failure_in(*called)));
    else
      all.push_back(std::move(called->out));
  }
  return all;
}

Error become_call_there(const LabHost& host, std::string_view words) {
  const sys::Command call = ssh_call(ssh_of_environment(), host, words);
  sys::JobCommand command;
  command.words.push_back(call.program);
  command.words.insert(command.words.end(), call.arguments.begin(), call.arguments.end());
  return {ErrorCode::failure, sys::exec_job(command).message};
}

Result<command::Output> call_there(const LabHost& host, const std::vector<std::string>& words) {
  const auto called = call_on_each(ssh_alone(), {host}, words).front();
  if (!called) return fail(called.error().code, "{}: {}", host.name, called.error().message);
  const auto named = [&](std::string_view text) {
    return text.empty() ? "" : fmt::format("{}: {}", host.name, printable_lines(text));
  };
  return command::Output{.out = named(called->out), .err = named(called->err), .status = called->exit_status};
}

Result<FarTicket> find_far_ticket(const std::vector<LabHost>& hosts, std::string_view word) {
  // Looks in an empty ledger, so the only error is one of the word itself.
  if (const auto shape = ticket_named(Ledger{}, word); !shape && shape.error().code == ErrorCode::usage)
    return std::unexpected(shape.error());
  const Hosts seen = look_at_hosts(hosts);
  std::vector<FarTicket> found;
  std::string silent;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!seen[i]->report) silent += fmt::format("{}{}", silent.empty() ? "" : ", ", hosts[i].name);
    if (!seen[i]->report) continue;
    for (const Ticket& ticket : seen[i]->report->ledger.tickets)
      if (to_text(ticket.id).ends_with(word)) found.push_back({hosts[i], to_text(ticket.id)});
  }
  if (found.size() == 1) return found.front();
  if (found.empty())
    return fail(ErrorCode::failure, "no lease and no request on these hosts has the id {}{}", word,
                silent.empty() ? "" : fmt::format("; not known of {}, which do not answer", silent));
  // Of all hosts together: the same short name may stand on two.
  Ledger together;
  for (const FarTicket& each : found) {
    if (const auto id = ticket_id_from_text(each.id)) together.tickets.emplace_back().id = *id;
  }
  std::string all;
  for (std::size_t i = 0; i < found.size(); ++i)
    all += fmt::format("{}{} on {}", all.empty() ? "" : ", ", short_name(together, together.tickets[i].id),
                       found[i].host.name);
  return fail(ErrorCode::usage, "{} could be {}; give more digits, or --host", word, all);
}

}  // namespace berth::hosts
