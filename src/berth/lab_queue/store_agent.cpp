// The shell of the agent's step (model/store_agent.h): a single coroutine asks the store what the
// step wants, one question after another. As in http_server.cpp, a coroutine is given variables,
// never temporaries.
#include "berth/lab_queue/store_agent.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "berth/lab_queue/lab_connections.h"
#include "berth/lab_queue/lab_store.h"
#include "berth/lab_queue/model/store_agent.h"
#include "berth/lab_queue/store_heartbeat.h"
#include "berth/lab_queue/store_reading.h"
#include "berth/net/askers.h"
#include "berth/net/keep_going.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;
using Instant = std::chrono::steady_clock::time_point;

// Between two looks whether the name service has answered.
constexpr auto kBetweenLooks = 5ms;
constexpr auto kLongestBetweenLooks = 1s;

store_agent::Moment moment_now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

}  // namespace

class StoreAgent::Body : public std::enable_shared_from_this<Body> {
 public:
  Body(asio::io_context& loop, std::function<void(const std::string&)> log)
      : loop_(loop), log_(std::move(log)), bell_(loop) {}

  void show_queue_to(std::function<void(std::vector<LabStanding>)> show) { show_ = std::move(show); }

  Result<void> start(StoreAccess access) {
    access_ = std::move(access);
    store_agent::Settings settings{.name = access_.name,
                                   .machine = sys::host_name(),
                                   .order = access_.order,
                                   .limits = access_.limits,
                                   .shows = show_ != nullptr};
    state_ = store_agent::begin(std::move(settings), moment_now());
    const std::function<void(const store_agent::What&)> tell =
        [self = weak_from_this()](const store_agent::What& what) {
          if (const auto body = self.lock()) body->happen(what);
        };
    store_ = std::make_shared<StoreReading>(loop_, access_, [tell] { tell(store_agent::News{}); });
    heartbeat_ = std::make_unique<StoreHeartbeat>(store_, access_.name, log_);
    connections_ = std::make_shared<LabConnections>(loop_, tell);
    BERTH_DO(connections_->admit_at(access_.socket));
    store_->start();
    net::keep_going(loop_, shared_from_this(), rounds);
    return {};
  }

 private:
  using Question = std::variant<store_agent::Appear, store_agent::Change, store_agent::Read>;

  static net::Task<> rounds(std::shared_ptr<Body> self) {
    while (true) {
      if (self->question_) {
        Question question = *std::exchange(self->question_, std::nullopt);
        const auto answer = co_await self->ask(std::move(question));
        self->happen(answer ? *answer : store_agent::What(store_agent::NotAnswered{answer.error().message}));
        continue;
      }
      self->bell_.expires_at(self->rests_until_);
      co_await self->bell_.async_wait(net::kAwait);
      if (!self->question_ && std::chrono::steady_clock::now() >= self->rests_until_)
        self->happen(store_agent::Woke{});
    }
  }

  net::Task<Result<store_agent::What>> ask(Question question) {
    if (const auto* appear = std::get_if<store_agent::Appear>(&question)) {
      if (appear->anew) heartbeat_->is_lost();
      BERTH_CO_LET(const auto renewal, co_await heartbeat_->renew());
      co_return store_agent::IsPresent{renewal.time_since_epoch()};
    }
    if (auto* wanted = std::get_if<store_agent::Change>(&question)) {
      BERTH_CO_LET(const auto done, co_await store_->change(std::move(wanted->change)));
      co_return store_agent::Changed{done.made};
    }
    const bool in_any_case = std::get<store_agent::Read>(question).in_any_case;
    BERTH_CO_LET(const bool all, co_await store_->be_current(in_any_case));
    co_return store_agent::IsRead{all};
  }

  /// The user's name and groups, as long as the client is there.
  static net::Task<> ask_limits(std::shared_ptr<Body> self, store_agent::AskLimits whose) {
    net::Timer pause(self->loop_);
    std::chrono::milliseconds length = kBetweenLooks;
    while (self->connections_->has(whose.client)) {
      if (auto asker = self->askers_.find(whose.uid)) {
        self->happen(store_agent::LimitsKnown{whose.client, *std::move(asker)});
        co_return;
      }
      pause.expires_after(length);
      co_await pause.async_wait(net::kAwait);
      length = std::min<std::chrono::milliseconds>(2 * length, kLongestBetweenLooks);
    }
  }

  void happen(const store_agent::What& what) {
    const std::string url = url_of(store_->member());
    const sys::DayMinute hour = access_.limits.hours.empty() ? sys::DayMinute{} : sys::machine_minute();
    const store_agent::Given given{.now = moment_now(),
                                   .hour = {hour.day_of_week, hour.minute},
                                   .store = store_->now(),
                                   .is_unread = store_->is_unread(),
                                   .url = url};
    for (store_agent::Action& action : store_agent::next(state_, given, what))
      std::visit([this](auto& each) { perform(std::move(each)); }, action);
  }

  void perform(const store_agent::Tell& what) { connections_->send(what.client, what.line); }
  void perform(store_agent::Dismiss what) { connections_->dismiss(what.client); }
  void perform(store_agent::AskLimits what) {
    asio::co_spawn(loop_, ask_limits(shared_from_this(), what), asio::detached);
  }
  void perform(store_agent::Appear what) { is_to_ask(what); }
  void perform(store_agent::Change what) { is_to_ask(std::move(what)); }
  void perform(store_agent::Read what) { is_to_ask(what); }
  void perform(store_agent::Forget) { store_->forget(); }
  void perform(store_agent::AskAnother) { store_->use_next_member(); }
  void perform(const store_agent::Log& what) { log_(what.line); }
  void perform(store_agent::Show what) { show_(std::move(what.standing)); }
  void perform(store_agent::Rest what) {
    rests_until_ = Instant(std::chrono::duration_cast<Instant::duration>(what.until));
    bell_.cancel();
  }

  void is_to_ask(Question question) {
    question_ = std::move(question);
    bell_.cancel();
  }

  asio::io_context& loop_;
  std::function<void(const std::string&)> log_;
  std::function<void(std::vector<LabStanding>)> show_;
  StoreAccess access_;
  store_agent::State state_;
  std::shared_ptr<StoreReading> store_;
  std::unique_ptr<StoreHeartbeat> heartbeat_;
  std::shared_ptr<LabConnections> connections_;
  net::Askers askers_;
  std::optional<Question> question_;  ///< that comes next; none: one is asked, or the agent rests
  Instant rests_until_{};
  net::Timer bell_;
};

StoreAgent::StoreAgent(asio::io_context& loop, std::function<void(const std::string&)> log)
    : body_(std::make_shared<Body>(loop, std::move(log))) {}
StoreAgent::~StoreAgent() = default;

void StoreAgent::show_queue_to(std::function<void(std::vector<LabStanding>)> show) {
  body_->show_queue_to(std::move(show));
}

Result<void> StoreAgent::start(StoreAccess access) {
  return body_->start(std::move(access));
}

}  // namespace berth::lab_queue
