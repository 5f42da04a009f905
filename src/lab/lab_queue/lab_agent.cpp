// The loop around the agent's step (model/lab_agent_step.h): a single coroutine asks the store what
// the step wants, one question after another. As in http_server.cpp, a coroutine is given
// variables, never temporaries.
#include "berth/lab_queue/lab_agent.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "berth/lab_queue/etcd_client.h"
#include "berth/lab_queue/lab_connections.h"
#include "berth/lab_queue/model/lab_agent_step.h"
#include "berth/net/background_work.h"
#include "berth/net/listener.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;
using Instant = std::chrono::steady_clock::time_point;

// Between two looks whether the name service has answered.
constexpr auto kBetweenLooks = 5ms;
constexpr auto kLongestBetweenLooks = 1s;

SteadyTime steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

class Agent : public std::enable_shared_from_this<Agent> {
 public:
  Agent(asio::io_context& loop, EtcdAccess access, std::function<void(const std::string&)> log,
        std::function<void(std::vector<LabStanding>)> show)
      : loop_(loop),
        log_(std::move(log)),
        show_(std::move(show)),
        access_(std::move(access)),
        state_(lab_agent::begin({.name = access_.name,
                                 .machine = sys::host_name(),
                                 .order = access_.order,
                                 .limits = access_.limits,
                                 .hosts = {access_.hosts.begin(), access_.hosts.end()},
                                 .shows = show_ != nullptr},
                                steady_now())),
        bell_(loop) {}

  Result<void> start() {
    const std::function<void(const lab_agent::Event&)> tell =
        [self = weak_from_this()](const lab_agent::Event& what) {
          if (const auto agent = self.lock()) agent->happen(what);
        };
    store_ = std::make_shared<EtcdReading>(loop_, access_, [tell] { tell(lab_agent::News{}); });
    heartbeat_ = std::make_unique<EtcdHeartbeat>(store_, access_.name, log_);
    connections_ = std::make_shared<LabConnections>(loop_, tell);
    BERTH_DO(connections_->admit_at(access_.socket));
    store_->start();
    net::keep_going(loop_, shared_from_this(), rounds);
    return {};
  }

 private:
  using Question = std::variant<lab_agent::Appear, lab_agent::Change, lab_agent::Read>;

  static net::Coroutine<> rounds(std::shared_ptr<Agent> self) {
    while (true) {
      if (self->question_) {
        Question question = *std::exchange(self->question_, std::nullopt);
        const auto answer = co_await self->ask(std::move(question));
        self->happen(answer ? *answer : lab_agent::Event(lab_agent::NotAnswered{answer.error().message}));
        continue;
      }
      self->bell_.expires_at(self->rests_until_);
      co_await self->bell_.async_wait(net::kAwait);
      if (!self->question_ && std::chrono::steady_clock::now() >= self->rests_until_)
        self->happen(lab_agent::Woke{});
    }
  }

  net::Coroutine<Result<lab_agent::Event>> ask(Question question) {
    if (const auto* appear = std::get_if<lab_agent::Appear>(&question)) {
      BERTH_CO_LET(const auto renewal, co_await heartbeat_->renew(appear->anew));
      co_return lab_agent::IsPresent{renewal.time_since_epoch()};
    }
    if (auto* wanted = std::get_if<lab_agent::Change>(&question)) {
      BERTH_CO_LET(const auto done, co_await store_->change(std::move(wanted->change)));
      co_return lab_agent::Changed{done.made};
    }
    const bool in_any_case = std::get<lab_agent::Read>(question).in_any_case;
    BERTH_CO_LET(const bool all, co_await store_->be_current(in_any_case));
    co_return lab_agent::IsRead{all};
  }

  /// The user's name and groups, as long as the client is there.
  static net::Coroutine<> ask_limits(std::shared_ptr<Agent> self, lab_agent::AskLimits whose) {
    net::Timer pause(self->loop_);
    std::chrono::milliseconds length = kBetweenLooks;
    while (self->connections_->has(whose.client)) {
      if (auto asker = self->askers_.find(whose.uid)) {
        self->happen(lab_agent::LimitsKnown{whose.client, *std::move(asker)});
        co_return;
      }
      pause.expires_after(length);
      co_await pause.async_wait(net::kAwait);
      length = std::min<std::chrono::milliseconds>(2 * length, kLongestBetweenLooks);
    }
  }

  void happen(const lab_agent::Event& what) {
    const std::string url = url_of(store_->member());
    const lab_agent::StepInput given{
        .now = steady_now(),
        .hour = access_.limits.hours.empty() ? WeekMinute{} : sys::machine_minute(),
        .store = store_->now(),
        .is_unread = store_->is_unread(),
        .url = url};
    for (lab_agent::Action& action : lab_agent::next(state_, given, what))
      std::visit([this](auto& each) { perform(std::move(each)); }, action);
  }

  void perform(const lab_agent::Tell& what) { connections_->send(what.client, what.line); }
  void perform(lab_agent::Dismiss what) { connections_->dismiss(what.client); }
  void perform(lab_agent::AskLimits what) {
    asio::co_spawn(loop_, ask_limits(shared_from_this(), what), asio::detached);
  }
  void perform(lab_agent::Forget) { store_->forget(); }
  void perform(lab_agent::AskAnother) { store_->use_next_member(); }
  void perform(const lab_agent::Log& what) { log_(what.line); }
  void perform(lab_agent::Show what) { show_(std::move(what.standing)); }
  void perform(Question what) {
    question_ = std::move(what);
    bell_.cancel();
  }
  void perform(lab_agent::Rest what) {
    rests_until_ = Instant(what.until);
    bell_.cancel();
  }

  asio::io_context& loop_;
  std::function<void(const std::string&)> log_;
  std::function<void(std::vector<LabStanding>)> show_;
  EtcdAccess access_;
  lab_agent::State state_;
  std::shared_ptr<EtcdReading> store_;
  std::unique_ptr<EtcdHeartbeat> heartbeat_;
  std::shared_ptr<LabConnections> connections_;
  net::Askers askers_;
  std::optional<Question> question_;  ///< that comes next; none: one is asked, or the agent rests
  Instant rests_until_{};
  net::Timer bell_;
};

}  // namespace

Result<void> start_lab_agent(asio::io_context& loop, EtcdAccess access,
                             std::function<void(const std::string&)> log,
                             std::function<void(std::vector<LabStanding>)> show) {
  return std::make_shared<Agent>(loop, std::move(access), std::move(log), std::move(show))->start();
}

}  // namespace berth::lab_queue
