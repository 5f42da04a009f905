// A coroutine a host. As in http_server.cpp, what is handed to a coroutine is a variable, never a
// temporary.
#include "berth/hub/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <random>

#include "berth/agent/watcher.h"
#include "berth/hub/hub_pages.h"
#include "berth/hub/hub_services.h"
#include "berth/net/client.h"
#include "berth/net/gzip.h"
#include "berth/net/worker.h"

namespace berth::hub {
namespace {

using namespace std::chrono_literals;

/// News of many hosts within this time are published at once.
constexpr auto kGathering = 200ms;
/// More than a hub can use up, so that one started anew begins above; below 2^53 for centuries.
constexpr std::uint64_t kNumbersPerSecond = 1'000'000;
constexpr const char* kAskedPath = "/api/v1/hosts";
constexpr const char* kNoRoomBesideOthers =
    "what it tells is not shown: with that of all others it would take more than 64 MiB";
constexpr const char* kNoRoom = "what it answers cannot be dealt with here for want of memory";
using Moment = std::chrono::steady_clock::time_point;

/// A host, and how it is asked.
struct Polled {
  Polled(asio::io_context& loop, Agent who) : agent(std::move(who)), bell(loop) {}

  Agent agent;
  agent::PostedHost posted;
  std::unique_ptr<net::Client> client;
  net::Timer bell;  ///< rings when it is to be asked
  Moment second{};  ///< when it is asked for the second time
  std::string tag;  ///< of its last answer
  unsigned failures = 0;
  bool is_told_of = false;  ///< that what it answers cannot be dealt with
  bool is_renewed = false;  ///< certificates were read again
  bool is_wanted = true;
};

}  // namespace

class Hub::Body : public std::enable_shared_from_this<Body> {
 public:
  Body(asio::io_context& loop, Publish publish, Log log, http::ByPath<http::Service> own)
      : loop_(loop),
        publish_(std::move(publish)),
        log_(std::move(log)),
        services_(loop, std::move(own)),
        gathering_(loop),
        number_(static_cast<std::uint64_t>(std::time(nullptr)) * kNumbersPerSecond) {}

  void apply(Rounds rounds) {
    every_ = rounds.every;
    patience_ = rounds.patience;
    sharing_ = net::client_sharing(loop_);
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
    const Wanted wanted = wanted_now();
    tell(made_of(wanted));
  }

  HubServices& services() { return services_; }

  std::vector<AgentNow> agents() const {
    std::vector<AgentNow> agents;
    for (const auto& each : polled_) agents.push_back({&each->agent, each->posted.host->is_up()});
    return agents;
  }

  void take_own(std::shared_ptr<const http::Published> own) {
    asio::post(loop_, [self = shared_from_this(), own = std::move(own)]() mutable {
      self->own_ = std::move(own);
      for (const auto& each : self->polled_) {
        if (!each->agent.peer) self->take_own_host(each);
      }
    });
  }

  void take_lab_queue(std::vector<LabStanding> queue) {
    queue_ = std::move(queue);
    queue_number_ = ++number_;
    gather();
  }

 private:
  /// The first time all at once, and then spread over the interval, so that work and traffic are
  /// even.
  void begin(const std::vector<std::shared_ptr<Polled>>& fresh) {
    const Moment now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      Polled& each = *fresh[i];
      each.second = now + pause_before_second(every_, i, fresh.size());
      Host host{.name = each.agent.name};
      if (each.agent.peer) host.url = url_of(*each.agent.peer);
      host.error = each.agent.refusal.empty() ? kNotAskedYet : each.agent.refusal;
      each.posted = agent::post(host, http::make_part(view::host_json(host)), ++number_);
      if (!each.agent.peer) {
        if (own_) take_own_host(fresh[i]);
      } else if (each.agent.refusal.empty()) {
        start_asking(fresh[i]);
      }
    }
  }

  /// The result of an answer, which is posted if possible.
  struct Made {
    Host host;
    http::Part entry;  ///< its text is empty where nothing is new
    std::optional<agent::HostChange> change{};
  };

  void start_asking(std::shared_ptr<Polled> polled) {
    asio::co_spawn(loop_, ask_again_and_again(shared_from_this(), std::move(polled)), asio::detached);
  }

  /// Where memory ends in the middle of an answer, the coroutine ends without a word. It must begin
  /// again.
  struct Revival {
    std::shared_ptr<Body> body;
    std::shared_ptr<Polled> polled;

    Revival(std::shared_ptr<Body> whose, std::shared_ptr<Polled> whom)
        : body(std::move(whose)), polled(std::move(whom)) {}
    Revival(const Revival&) = delete;
    Revival& operator=(const Revival&) = delete;
    ~Revival() {
      if (!polled->is_wanted) return;
      asio::post(body->loop_, [body = body, polled = polled] { body->revive(polled); });
    }
  };

  void revive(const std::shared_ptr<Polled>& polled) {
    if (!polled->is_wanted) return;
    polled->client.reset();
    settle(*polled, news_of_failure(*polled->posted.host, kNoRoom));
    if (!std::exchange(polled->is_told_of, true))
      log_(fmt::format("agent {}: {}", polled->agent.name, kNoRoom));
    polled->bell.expires_at(next_time(*polled, std::chrono::steady_clock::now()));
    polled->bell.async_wait([self = shared_from_this(), polled](const boost::system::error_code&) {
      if (polled->is_wanted) self->start_asking(polled);
    });
  }

  static net::Task<> ask_again_and_again(std::shared_ptr<Body> body, std::shared_ptr<Polled> polled) {
    const Revival revival(body, polled);
    while (polled->is_wanted) {
      if (!polled->client || polled->is_renewed)
        polled->client = std::make_unique<net::Client>(body->loop_, body->sharing_, *polled->agent.peer,
                                                       body->most_bytes_);
      polled->is_renewed = false;
      const Moment asked = std::chrono::steady_clock::now();
      const std::string path = kAskedPath;
      const std::string tag = polled->posted.host->is_up() ? polled->tag : "";
      const std::chrono::milliseconds patience = body->patience_;
      {  // the text of the answer goes before the wait
        auto answer = co_await polled->client->get(path, tag, patience);
        body->polls_.seconds +=
            std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count();
        if (!polled->is_wanted) co_return;
        co_await body->take(polled, std::move(answer));
      }
      polled->bell.expires_at(body->next_time(*polled, asked));
      co_await polled->bell.async_wait(net::kAwait);
    }
  }

  Moment next_time(Polled& polled, Moment asked) {
    const Moment now = std::chrono::steady_clock::now();
    if (polled.failures == 0 && polled.second > now) return std::exchange(polled.second, Moment());
    const double chance = std::uniform_real_distribution<double>(0, 1)(random_);
    return std::max(now, asked + pause_after(every_, polled.failures, chance));
  }

  /// An answer becomes values, and they text again, beside the loop: that takes what the agent
  /// likes.
  net::Task<> take(std::shared_ptr<Polled> polled, Result<http::Response> answer) {
    // Without a tag, the one of an answer before says nothing of this one.
    if (answer && answer->status == 200) polled->tag = answer->tag;
    auto work = [before = polled->posted, answer = std::move(answer), now_s = std::time(nullptr)] {
      HostNews news = news_after_asking(*before.host, answer, now_s);
      Made made{.host = std::move(news.host), .entry = http::make_part(std::move(news.entry))};
      net::pack(made.entry);
      if (std::string change = view::host_change_json(*before.entry.text, *made.entry.text); !change.empty())
        made.change = {before.event.number, http::make_part(std::move(change))};
      return made;
    };
    auto made = co_await worker_.run(std::move(work));
    if (!polled->is_wanted) co_return;
    if (made) {
      settle(*polled, *std::move(made));
    } else {
      settle(*polled, news_of_failure(*polled->posted.host, made.error().message));
    }
  }

  void settle(Polled& polled, HostNews news) {
    settle(polled, {.host = std::move(news.host), .entry = http::make_part(std::move(news.entry))});
  }

  /// An unchanged host is not sent again, but for the time when it was seen, which is told with
  /// what is new next.
  void settle(Polled& polled, Made made) {
    auto& [host, entry, change] = made;
    if (host.report != polled.posted.host->report && !has_room(polled, entry.text->size()))
      return settle(polled, news_of_failure(*polled.posted.host, kNoRoomBesideOthers));
    polled.failures = host.is_up() ? 0 : polled.failures + 1;
    ++(host.is_up() ? polls_.answered : polls_.failed);
    if (host.is_up()) polled.is_told_of = false;
    if (entry.text->empty()) {
      polled.posted.host = std::make_shared<const Host>(std::move(host));
      return;
    }
    // News of this machine itself may have come twice at once.
    if (change && change->since != polled.posted.event.number) change.reset();
    polled.posted = agent::post(std::move(host), std::move(entry), ++number_, change);
    gather();
  }

  bool has_room(const Polled& polled, std::size_t entry_bytes) const {
    const HostShares shares(polled_.size());
    // Of nearly all: then the others need not be counted, each time one of a thousand has news.
    if (shares.beyond_share(entry_bytes) == 0) return true;
    std::size_t others_beyond = 0;
    for (const auto& each : polled_) {
      if (each.get() != &polled) others_beyond += shares.beyond_share(each->posted.entry.text->size());
    }
    return shares.has_room(entry_bytes, others_beyond);
  }

  /// As if it had been asked over the network.
  void take_own_host(const std::shared_ptr<Polled>& polled) {
    const http::Page& page = own_->pages.at(kAskedPath);
    Result<http::Response> answer = http::Response{.status = page.status, .body = joined(*page.parts)};
    asio::co_spawn(loop_, take(polled, std::move(answer)),
                   [self = shared_from_this()](const std::exception_ptr&) {});
  }

  void gather() {
    is_behind_ = true;
    if (is_gathering_) return;
    is_gathering_ = true;
    gathering_.expires_after(kGathering);
    gathering_.async_wait([self = shared_from_this()](const boost::system::error_code&) {
      self->is_behind_ = false;
      asio::co_spawn(self->loop_, publish_all(self), [self](const std::exception_ptr&) {
        self->is_gathering_ = false;
        if (self->is_behind_) self->gather();
      });
    });
  }

  /// A publication, as things were at one moment of the loop.
  struct Wanted {
    std::vector<agent::PostedHost> posted;
    view::HostsHead head;
    std::shared_ptr<const http::Published> own;
    view::PollCounts polls;
  };

  Wanted wanted_now() {
    Wanted wanted;
    wanted.polls = polls_;
    wanted.posted.reserve(polled_.size());
    for (const auto& each : polled_) wanted.posted.push_back(each->posted);
    wanted.head = {.number = ++number_,
                   .time_s = std::time(nullptr),
                   .every_s = every_.count(),
                   .is_hub = true,
                   .queue = queue_,
                   .queue_number = queue_number_};
    // A watcher goes on after a reload that left its machine out.
    if (std::ranges::any_of(polled_, [](const auto& each) { return !each->agent.peer; })) wanted.own = own_;
    return wanted;
  }

  static std::shared_ptr<const http::Published> made_of(const Wanted& wanted) {
    auto published =
        publish_hub(wanted.posted, wanted.head, agent::own_hostname(), wanted.own.get(), wanted.polls);
    net::pack(published);
    return std::make_shared<const http::Published>(std::move(published));
  }

  static net::Task<> publish_all(std::shared_ptr<Body> self) {
    auto work = [wanted = self->wanted_now()] { return made_of(wanted); };
    const auto made = co_await self->worker_.run(std::move(work));
    if (made) {
      self->tell(*made);
    } else {
      self->log_(made.error().message);
    }
  }

  void tell(const std::shared_ptr<const http::Published>& published) {
    if (published->number < told_) return;  // settings were read again meanwhile
    told_ = published->number;
    publish_(published);
  }

  asio::io_context& loop_;
  Publish publish_;
  Log log_;
  net::Worker worker_{loop_};
  HubServices services_;
  net::Timer gathering_;
  bool is_gathering_ = false;
  bool is_behind_ = false;  ///< there is news since what is being published was gathered
  view::PollCounts polls_;
  std::uint64_t told_ = 0;  ///< number of what was published last
  std::uint64_t number_;    ///< of events; from one that no hub before reached
  std::chrono::seconds every_{};
  std::chrono::seconds patience_{};
  std::size_t most_bytes_ = net::kMostBodyBytes;  ///< of an answer
  std::shared_ptr<net::ClientSharing> sharing_;
  std::vector<std::shared_ptr<Polled>> polled_;
  std::shared_ptr<const http::Published> own_;
  std::vector<LabStanding> queue_;
  std::uint64_t queue_number_ = 0;  ///< of the event that tells it; 0: nobody has told it
  // std::random_device asks for glibc 2.36. Nothing secret hangs on it.
  std::minstd_rand random_{static_cast<std::minstd_rand::result_type>(
      std::chrono::steady_clock::now().time_since_epoch().count())};
};

Hub::Hub(asio::io_context& loop, Publish publish, Log log, http::ByPath<http::Service> own)
    : body_(std::make_shared<Body>(loop, std::move(publish), std::move(log), std::move(own))) {}
Hub::~Hub() = default;

void Hub::apply(Rounds rounds) {
  body_->apply(std::move(rounds));
}

void Hub::ask_host(const http::Call& call, http::Reply reply) {
  body_->services().ask_host(body_->agents(), call, std::move(reply));
}

void Hub::ask_usage(const http::Call& call, const http::Reply& reply) {
  body_->services().ask_usage(body_->agents(), call, reply);
}

void Hub::take_lab_queue(std::vector<LabStanding> queue) {
  body_->take_lab_queue(std::move(queue));
}

void Hub::take_own(std::shared_ptr<const http::Published> own) {
  body_->take_own(std::move(own));
}

}  // namespace berth::hub
