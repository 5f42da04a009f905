// The deeds of the pure step (src/show/hub/model/poller_step.h). As in http_server.cpp, what is
// handed to a coroutine is a variable, never a temporary.
#include "berth/hub/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <map>
#include <new>
#include <random>

#include "berth/agent/watcher.h"
#include "berth/hub/hub_pages.h"
#include "berth/hub/model/poller_step.h"
#include "berth/net/background_work.h"
#include "berth/net/event_stream.h"

namespace berth::hub {
namespace {

/// More than a hub can use up, so that one started anew begins above; below 2^53 for centuries.
constexpr std::uint64_t kNumbersPerSecond = 1'000'000;
constexpr const char* kAskedPath = "/api/v1/hosts";
constexpr const char* kNoMemory = "what is new is told later, for want of memory";

using OnePolled = std::shared_ptr<Polled>;

/// A page, as things were at one moment of the loop.
struct WantedPage {
  std::vector<agent::PostedHost> posted;
  view::HostsHead head;
  std::shared_ptr<const http::Published> own;
  view::PollCounts polls;
};

std::shared_ptr<const http::Published> made_of(const WantedPage& wanted) {
  auto published =
      publish_hub(wanted.posted, wanted.head, agent::own_hostname(), wanted.own.get(), wanted.polls);
  net::pack(published);
  return std::make_shared<const http::Published>(std::move(published));
}

}  // namespace

class Hub::Body : public std::enable_shared_from_this<Body> {
 public:
  Body(asio::io_context& loop, Publish publish, Log log, http::ByPath<http::Service> own)
      : loop_(loop),
        publish_(std::move(publish)),
        log_(std::move(log)),
        services_(loop, std::move(own)),
        gathering_(loop) {
    state_.number = static_cast<std::uint64_t>(std::time(nullptr)) * kNumbersPerSecond;
  }

  void apply(Rounds rounds) {
    every_ = rounds.every;
    patience_ = rounds.patience;
    sharing_ = net::client_sharing(loop_);
    most_bytes_ = most_of_answer(rounds.agents.size());
    services_.use(sharing_, patience_, most_bytes_);
    std::map<std::string, OnePolled> before;
    for (const OnePolled& each : polled_) before.emplace(each->agent.name, each);
    polled_.clear();
    poller::Applied applied{{}, rounds.every};
    for (Agent& agent : rounds.agents) {
      const auto known = before.find(agent.name);
      const bool is_known = known != before.end() && known->second->agent == agent;
      polled_.push_back(is_known ? known->second : newcomer(std::move(agent)));
      applied.hosts.push_back(polled_.back()->named());
    }
    happen(std::move(applied));
  }

  HubServices& services() { return services_; }

  std::vector<AgentNow> agents() const {
    std::vector<AgentNow> agents;
    for (const OnePolled& each : polled_) agents.push_back({&each->agent, each->posted.host->is_up()});
    return agents;
  }

  void take_own(std::shared_ptr<const http::Published> own) {
    asio::post(loop_, [self = shared_from_this(), own = std::move(own)]() mutable {
      self->own_ = std::move(own);
      self->happen(poller::OwnPublished{});
    });
  }

  void take_lab_queue(std::vector<LabStanding> queue) {
    queue_ = std::move(queue);
    happen(poller::LabQueueChanged{});
  }

 private:
  OnePolled newcomer(Agent agent) {
    auto polled = std::make_shared<Polled>(loop_, ++last_id_, std::move(agent));
    return by_id_[polled->id] = polled;
  }

  /// If a deed makes something happen at once, that waits until all that the step has said is done.
  void happen(poller::Event what) {
    events_.push_back(std::move(what));
    if (events_.size() > 1) return;
    while (!events_.empty()) {
      const Taken taken{events_};
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      const double chance = std::uniform_real_distribution<double>(0, 1)(random_);
      for (const poller::Action& action : poller::next(state_, {now, chance, std::move(events_.front())}))
        act(action);
    }
  }
  /// Also where memory ends, the next event is taken.
  struct Taken {
    std::deque<poller::Event>& events;
    ~Taken() { events.pop_front(); }
  };

  void act(const poller::Action& action) {
    try {
      std::visit([this](const auto& what) { perform(what); }, action);
    } catch (const std::bad_alloc&) {
      std::visit([this](const auto& what) { could_not(what); }, action);
    }
  }
  // Each deed that has an answer gets one.
  void could_not(const poller::Ask& what) { happen(poller::AnswerLost{what.host}); }
  void could_not(const poller::ReadOwn& what) { happen(poller::AnswerLost{what.host}); }
  void could_not(const poller::Refuse& what) { happen(poller::HostRead{.host = what.host}); }
  void could_not(const poller::MakePage& what) { happen(poller::NotMade{what.number, kNoMemory}); }
  void could_not(const poller::MakePageNow& what) { happen(poller::NotMade{what.number, kNoMemory}); }
  template <class Other>
  void could_not(const Other&) {
    log_(kNoMemory);
  }

  /// Where memory ends in the middle of an answer, the coroutine ends without a word.
  class OwedAnswer {
   public:
    OwedAnswer(std::shared_ptr<Body> body, poller::HostId host) : body_(std::move(body)), host_(host) {}
    OwedAnswer(const OwedAnswer&) = delete;
    OwedAnswer& operator=(const OwedAnswer&) = delete;
    ~OwedAnswer() {
      if (!body_) return;
      asio::post(body_->loop_, [body = body_, host = host_] { body->happen(poller::AnswerLost{host}); });
    }
    void was_given() { body_.reset(); }

   private:
    std::shared_ptr<Body> body_;
    poller::HostId host_;
  };

  // --- asking

  void perform(const poller::Ask& what) {
    const OnePolled& polled = by_id_.at(what.host);
    if (what.connection == poller::ConnectionAge::fresh) polled->client.reset();
    asio::co_spawn(loop_, ask(shared_from_this(), polled, what.tag), asio::detached);
  }

  static net::Coroutine<> ask(std::shared_ptr<Body> body, OnePolled polled, std::string tag) {
    OwedAnswer owed(body, polled->id);
    if (!polled->client)
      polled->client =
          std::make_unique<net::Client>(body->loop_, body->sharing_, *polled->agent.peer, body->most_bytes_);
    const std::string path = kAskedPath;
    const std::chrono::milliseconds patience = body->patience_;
    const auto asked = std::chrono::steady_clock::now();
    auto answer = co_await polled->client->get(path, tag, patience);
    body->asked_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count();
    co_await body->read(polled, std::move(answer));
    owed.was_given();
  }

  void perform(const poller::AskAt& what) {
    const OnePolled& polled = by_id_.at(what.host);
    polled->bell.expires_at(net::Timer::time_point(what.at));
    polled->bell.async_wait(
        [self = shared_from_this(), id = what.host](const boost::system::error_code& error) {
          if (!error) self->happen(poller::Due{id});
        });
  }

  void perform(const poller::ReadOwn& what) {
    const OnePolled& polled = by_id_.at(what.host);
    asio::co_spawn(loop_, read_own(shared_from_this(), polled), asio::detached);
  }

  /// As if it had been asked over the network.
  static net::Coroutine<> read_own(std::shared_ptr<Body> body, OnePolled polled) {
    OwedAnswer owed(body, polled->id);
    const http::Page& page = body->own_->pages.at(kAskedPath);
    Result<http::Response> answer = http::Response{.status = page.status, .body = joined(*page.parts)};
    co_await body->read(polled, std::move(answer));
    owed.was_given();
  }

  /// An answer becomes values, and they text again, beside the loop: that takes what the agent
  /// likes.
  net::Coroutine<> read(OnePolled polled, Result<http::Response> answer) {
    // Without a tag, the one of an answer before says nothing of this one.
    std::optional<std::string> tag;
    if (answer && answer->status == 200) tag = answer->tag;
    auto work = [before = polled->posted, answer = std::move(answer), now_s = std::time(nullptr)] {
      return row_after_asking(before, answer, now_s);
    };
    auto made = co_await worker_.run(std::move(work));
    if (made) {
      take(polled, *std::move(made), std::move(tag));
    } else {
      happen(poller::Unreadable{polled->id, made.error().message});
    }
  }

  void take(const OnePolled& polled, MadeRow made, std::optional<std::string> tag) {
    poller::HostRead read{.host = polled->id,
                          .is_up = made.host.is_up(),
                          .has_new_report = made.host.report != polled->posted.host->report,
                          .entry_bytes = made.entry.text->size(),
                          .tag = std::move(tag)};
    polled->made = std::move(made);
    happen(std::move(read));
  }

  void perform(const poller::Refuse& what) {
    const OnePolled& polled = by_id_.at(what.host);
    polled->made.reset();
    take(polled, row_of_failure(polled->posted, what.why), {});
  }

  // --- what becomes of an answer

  void perform(const poller::Keep& what) {
    Polled& polled = *by_id_.at(what.host);
    if (polled.made) polled.posted.host = std::make_shared<const Host>(std::move(polled.made->host));
    polled.made.reset();
  }

  void perform(const poller::Post& what) {
    Polled& polled = *by_id_.at(what.host);
    MadeRow& made = polled.made.value();
    polled.posted = agent::post(std::move(made.host), std::move(made.entry), what.number, made.change);
    polled.made.reset();
  }

  void perform(const poller::Drop& what) {
    by_id_.at(what.host)->bell.cancel();
    by_id_.erase(what.host);
  }

  void perform(const poller::Log& what) {
    log_(what.host ? fmt::format("agent {}: {}", by_id_.at(*what.host)->agent.name, what.what) : what.what);
  }

  // --- publishing

  void perform(const poller::PublishAt& what) {
    gathering_.expires_at(net::Timer::time_point(what.at));
    gathering_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) self->happen(poller::PageDue{});
    });
  }

  WantedPage wanted_now(std::uint64_t number) const {
    WantedPage wanted;
    wanted.polls = {.answered = state_.answered, .failed = state_.failed, .seconds = asked_seconds_};
    wanted.posted.reserve(polled_.size());
    for (const OnePolled& each : polled_) wanted.posted.push_back(each->posted);
    wanted.head = {.number = number,
                   .time_s = std::time(nullptr),
                   .every_s = every_.count(),
                   .is_hub = true,
                   .queue = queue_,
                   .queue_number = state_.queue_number};
    // A watcher goes on after a reload that left its machine out.
    if (std::ranges::any_of(polled_, [](const OnePolled& each) { return !each->agent.peer; }))
      wanted.own = own_;
    return wanted;
  }

  void perform(const poller::MakePage& what) {
    asio::co_spawn(loop_, make_page(shared_from_this(), what.number),
                   [self = shared_from_this(), number = what.number](const std::exception_ptr& thrown) {
                     if (thrown) self->happen(poller::NotMade{number, kNoMemory});
                   });
  }

  static net::Coroutine<> make_page(std::shared_ptr<Body> self, std::uint64_t number) {
    auto work = [wanted = self->wanted_now(number)] { return made_of(wanted); };
    auto made = co_await self->worker_.run(std::move(work));
    if (!made) {
      self->happen(poller::NotMade{number, made.error().message});
      co_return;
    }
    self->page_ = *std::move(made);
    self->happen(poller::Made{number});
    self->page_.reset();  // it may have come too late
  }

  void perform(const poller::MakePageNow& what) {
    page_ = made_of(wanted_now(what.number));
    happen(poller::Made{what.number});
  }

  void perform(const poller::Publish&) { publish_(std::exchange(page_, nullptr)); }

  asio::io_context& loop_;
  Publish publish_;
  Log log_;
  net::Worker worker_{loop_};
  HubServices services_;
  net::Timer gathering_;
  poller::State state_;
  std::deque<poller::Event> events_;  ///< the first is being taken
  double asked_seconds_ = 0;          ///< all questions together
  std::chrono::seconds every_{};
  std::chrono::seconds patience_{};
  std::size_t most_bytes_ = net::kMostBodyBytes;  ///< of an answer
  std::shared_ptr<net::ClientSharing> sharing_;
  poller::HostId last_id_ = 0;
  std::vector<OnePolled> polled_;  ///< in the order of the settings
  std::map<poller::HostId, OnePolled> by_id_;
  std::shared_ptr<const http::Published> page_;  ///< the last that was made, until it is published
  std::shared_ptr<const http::Published> own_;
  std::vector<LabStanding> queue_;
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
