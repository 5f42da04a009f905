// A coroutine a host. As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/net/hub.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <random>

#include "berth/agent/hub_pages.h"
#include "berth/agent/watcher.h"
#include "berth/net/client.h"
#include "berth/net/hub_services.h"

namespace berth::serve {
namespace {

using namespace std::chrono_literals;

/// What is told by many hosts at once is published once.
constexpr auto kGathering = 200ms;
/// More than a hub can use up, so that one started anew begins above; below 2^53 for centuries.
constexpr std::uint64_t kNumbersPerSecond = 1'000'000;
constexpr const char* kAskedPath = "/api/v1/hosts";
using Moment = std::chrono::steady_clock::time_point;

/// One host, and how it is asked.
struct Polled {
  Polled(asio::io_context& loop, Agent who) : agent(std::move(who)), bell(loop) {}

  Agent agent;
  PostedHost posted;
  std::unique_ptr<Client> client;
  Timer bell;       ///< rings when it is to be asked
  Moment second{};  ///< when it is asked for the second time
  std::string tag;  ///< of its last answer
  unsigned failures = 0;
  bool is_renewed = false;  ///< certificates were read again
  bool is_wanted = true;
};

}  // namespace

class Hub::Body : public std::enable_shared_from_this<Body> {
 public:
  Body(asio::io_context& loop, Publish publish, ByPath<Service> own)
      : loop_(loop),
        publish_(std::move(publish)),
        services_(loop, std::move(own)),
        gathering_(loop),
        number_(static_cast<std::uint64_t>(std::time(nullptr)) * kNumbersPerSecond) {}

  void apply(Rounds rounds) {
    every_ = rounds.every;
    patience_ = rounds.patience;
    sharing_ = client_sharing(loop_);
    most_bytes_ = most_of_answer(rounds.agents.size());
    services_.use(sharing_, patience_, most_bytes_);
    std::map<std::string, std::shared_ptr<Polled>> before;
    for (const auto& each : polled_) before.emplace(each->agent.name, each);
    polled_.clear();
    std::vector<std::shared_ptr<Polled>> fresh;
    for (Agent& agent : rounds.agents) {
      const auto known = before.find(agent.name);
      if (known != before.end() && known->second->agent == agent) {
        known->second->is_renewed = true;
        polled_.push_back(std::move(known->second));
        before.erase(known);
        continue;
      }
      fresh.push_back(polled_.emplace_back(std::make_shared<Polled>(loop_, std::move(agent))));
    }
    for (const auto& [name, each] : before) {
      each->is_wanted = false;
      each->bell.cancel();
    }
    begin(fresh);
    publish_all();
  }

  HubServices& services() { return services_; }

  std::vector<AgentNow> agents() const {
    std::vector<AgentNow> agents;
    for (const auto& each : polled_) agents.push_back({&each->agent, each->posted.host->is_up()});
    return agents;
  }

  void take_own(std::shared_ptr<const Published> own) {
    asio::post(loop_, [self = shared_from_this(), own = std::move(own)]() mutable {
      self->own_ = std::move(own);
      for (const auto& each : self->polled_) {
        if (!each->agent.peer) self->take_own_host(*each);
      }
    });
  }

 private:
  /// The first time all at once, and then spread over the interval, so that work and traffic are even.
  void begin(const std::vector<std::shared_ptr<Polled>>& fresh) {
    const Moment now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      Polled& each = *fresh[i];
      each.second = now + pause_before_second(every_, i, fresh.size());
      Host host{.name = each.agent.name};
      if (each.agent.peer) host.url = url_of(*each.agent.peer);
      host.error = each.agent.refusal.empty() ? kNotAskedYet : each.agent.refusal;
      each.posted = post(host, render::host_json(host), ++number_);
      if (!each.agent.peer) {
        if (own_) take_own_host(each);
      } else if (each.agent.refusal.empty()) {
        asio::co_spawn(loop_, ask_again_and_again(shared_from_this(), fresh[i]), asio::detached);
      }
    }
  }

  static asio::awaitable<void, Executor> ask_again_and_again(std::shared_ptr<Body> body,
                                                             std::shared_ptr<Polled> polled) {
    while (polled->is_wanted) {
      if (!polled->client || polled->is_renewed)
        polled->client =
            std::make_unique<Client>(body->loop_, body->sharing_, *polled->agent.peer, body->most_bytes_);
      polled->is_renewed = false;
      const Moment asked = std::chrono::steady_clock::now();
      std::string path = kAskedPath;
      std::string tag = polled->posted.host->is_up() ? polled->tag : "";
      const std::chrono::milliseconds patience = body->patience_;
      {  // the text of the answer goes before the wait
        const auto answer = co_await polled->client->get(std::move(path), std::move(tag), patience);
        if (!polled->is_wanted) co_return;
        body->take(*polled, answer);
      }
      polled->bell.expires_at(body->next_time(*polled, asked));
      co_await polled->bell.async_wait(kAwait);
    }
  }

  Moment next_time(Polled& polled, Moment asked) {
    const Moment now = std::chrono::steady_clock::now();
    if (polled.failures == 0 && polled.second > now) return std::exchange(polled.second, Moment());
    const double chance = std::uniform_real_distribution<double>(0, 1)(random_);
    return std::max(now, asked + pause_after(every_, polled.failures, chance));
  }

  void take(Polled& polled, const Result<Response>& answer) {
    const Host& before = *polled.posted.host;
    Host after = after_asking(before, answer, std::time(nullptr));
    polled.failures = after.is_up() ? 0 : polled.failures + 1;
    // Without a tag, the one of an answer before says nothing of this one.
    if (answer && answer->status == 200) polled.tag = answer->tag;
    // An unchanged host is not sent again, but for the time when it was seen, which is told with what is new
    // next.
    const bool is_news = after.report != before.report || after.error != before.error;
    if (!is_news) {
      polled.posted.host = std::make_shared<const Host>(std::move(after));
      return;
    }
    const std::string entry = render::host_json(after);
    polled.posted = post(std::move(after), entry, ++number_);
    gather();
  }

  /// As if it had been asked over the network.
  void take_own_host(Polled& polled) {
    const Page page = own_->questions.at(kAskedPath)({});
    take(polled, Response{.status = page.status, .body = *page.text});
  }

  void gather() {
    if (is_gathering_) return;
    is_gathering_ = true;
    gathering_.expires_after(kGathering);
    gathering_.async_wait([self = shared_from_this()](const boost::system::error_code&) {
      self->is_gathering_ = false;
      self->publish_all();
    });
  }

  void publish_all() {
    std::vector<PostedHost> posted;
    posted.reserve(polled_.size());
    for (const auto& each : polled_) posted.push_back(each->posted);
    const render::HostsHead head{++number_, std::time(nullptr), every_.count(), true};
    // A watcher goes on after a reload that left its machine out.
    const bool shows_own = std::ranges::any_of(polled_, [](const auto& each) { return !each->agent.peer; });
    const Published* own = shows_own ? own_.get() : nullptr;
    publish_(std::make_shared<const Published>(publish_hub(posted, head, own_hostname(), own)));
  }

  asio::io_context& loop_;
  Publish publish_;
  HubServices services_;
  Timer gathering_;
  bool is_gathering_ = false;
  std::uint64_t number_;  ///< of events; from one that no hub before reached
  std::chrono::seconds every_{};
  std::chrono::seconds patience_{};
  std::size_t most_bytes_ = kMostBodyBytes;  ///< of an answer
  std::shared_ptr<ClientSharing> sharing_;
  std::vector<std::shared_ptr<Polled>> polled_;
  std::shared_ptr<const Published> own_;
  // std::random_device asks for glibc 2.36. Nothing secret hangs on it.
  std::minstd_rand random_{static_cast<std::minstd_rand::result_type>(
      std::chrono::steady_clock::now().time_since_epoch().count())};
};

Hub::Hub(asio::io_context& loop, Publish publish, ByPath<Service> own)
    : body_(std::make_shared<Body>(loop, std::move(publish), std::move(own))) {}
Hub::~Hub() = default;

void Hub::apply(Rounds rounds) {
  body_->apply(std::move(rounds));
}

void Hub::ask_host(const Call& call, Reply reply) {
  body_->services().ask_host(body_->agents(), call, std::move(reply));
}

void Hub::ask_usage(const Call& call, const Reply& reply) {
  body_->services().ask_usage(body_->agents(), call, reply);
}

void Hub::take_own(std::shared_ptr<const Published> own) {
  body_->take_own(std::move(own));
}

}  // namespace berth::serve
