#include "berth/hosts/ask_hosts.h"

#include <algorithm>

#include "berth/hosts/channel.h"
#include "berth/hosts/model/unfit_host.h"

namespace berth::hosts {
namespace {

using Answers = std::vector<std::optional<Result<EnvoyMessage>>>;

/// All of one question, to each host.
class Round {
 public:
  Round(const EnvoyAsk& ask, const leasing::LeaseAsk& request) : is_look_(ask.mode == EnvoyMode::look) {
    question_ = encode(ask) + leasing::encode(request);
  }

  void open(const SshProgram& ssh, const std::vector<LabHost>& hosts) {
    for (const LabHost& host : hosts) {
      auto channel = Channel::open(host, ssh, false);
      answers_.emplace_back();
      if (!channel) answers_.back() = std::unexpected(channel.error());
      channels_.push_back(channel ? std::make_unique<Channel>(*std::move(channel)) : nullptr);
    }
  }

  Answers listen() {
    std::vector<pollfd> nothing_else;
    while (std::ranges::any_of(channels_, [](const auto& channel) { return bool(channel); })) {
      wait_on(channels_, nothing_else, next_deadline());
      for (std::size_t i = 0; i < channels_.size(); ++i)
        if (channels_[i]) hear(i);
    }
    return std::move(answers_);
  }

 private:
  std::chrono::steady_clock::time_point next_deadline() const {
    auto next = std::chrono::steady_clock::time_point::max();
    for (const auto& channel : channels_)
      if (channel) next = std::min(next, channel->opened_at() + patience_with(channel->has_greeted()));
    return next;
  }

  void hear(std::size_t i) {
    Channel& channel = *channels_[i];
    while (auto message = channel.next_message())
      if (!take(channel, std::move(*message), i)) return settle(i);
    // Nothing that is asked here changes anything there, so it can be asked again.
    if (channel.has_ended() && channel.is_shared() && channel.connect_alone()) return;
    if (channel.has_ended()) {
      answers_[i] = std::unexpected(channel.why_ended());
      settle(i);
    } else if (std::chrono::steady_clock::now() >=
               channel.opened_at() + patience_with(channel.has_greeted())) {
      answers_[i] = std::unexpected(why_silent(channel.host().name, channel.has_greeted()));
      settle(i);
    }
  }

  // True: it goes on.
  bool take(Channel& channel, Result<EnvoyMessage> message, std::size_t i) {
    const auto* hello = message ? std::get_if<EnvoyHello>(&*message) : nullptr;
    if (hello == nullptr) {
      answers_[i] = as_answer(std::move(message));
      return false;
    }
    // The report of a machine is checked when it is read, whatever version wrote it.
    if (const auto known = check_version(hello->version); !known && !is_look_) {
      answers_[i] = std::unexpected(known.error());
      return false;
    }
    channel.send(question_);
    return true;
  }

  static Result<EnvoyMessage> as_answer(Result<EnvoyMessage> message) {
    if (!message) return message;
    const auto* lease = std::get_if<leasing::LeaseMessage>(&*message);
    const auto* refused = lease != nullptr ? std::get_if<leasing::LeaseRefused>(lease) : nullptr;
    if (refused != nullptr) return std::unexpected(refused->error);
    return message;
  }

  void settle(std::size_t i) {
    channels_[i]->let_go();
    // It ends by itself while the others are listened to.
    channels_[i].reset();
  }

  bool is_look_;
  std::string question_;
  Channels channels_;
  Answers answers_;
};

}  // namespace

std::vector<Result<EnvoyMessage>> ask_hosts(const SshProgram& ssh, const std::vector<LabHost>& hosts,
                                            const EnvoyAsk& ask, const leasing::LeaseAsk& request) {
  Round round(ask, request);
  round.open(ssh, hosts);
  std::vector<Result<EnvoyMessage>> answers;
  for (auto& each : round.listen()) answers.push_back(*std::move(each));
  return answers;
}

}  // namespace berth::hosts
