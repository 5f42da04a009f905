#include "berth/hosts/ask_hosts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "berth/hosts/channel.h"
#include "berth/hosts/model/host_patience.h"
#include "berth/hosts/model/version_check.h"

namespace berth::hosts {
namespace {

struct AskedHost {
  std::optional<Channel> channel{};  ///< none: it is settled
  std::optional<Result<EnvoyMessage>> answer{};
};

/// All of one question, to each host.
class Round {
 public:
  Round(const EnvoyAsk& ask, const leasing::LeaseAsk& request) : is_look_(ask.mode == EnvoyMode::look) {
    question_ = encode(ask) + leasing::encode(request);
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
    const auto* lease = std::get_if<leasing::LeaseMessage>(&*message);
    const auto* refused = lease != nullptr ? std::get_if<leasing::LeaseRefused>(lease) : nullptr;
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
                                            const EnvoyAsk& ask, const leasing::LeaseAsk& request) {
  Round round(ask, request);
  round.open(ssh, hosts);
  std::vector<Result<EnvoyMessage>> answers;
  for (AskedHost& each : round.listen()) answers.push_back(*std::move(each.answer));
  return answers;
}

}  // namespace berth::hosts
