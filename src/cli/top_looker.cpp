#include "berth/cli/top_looker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include "berth/agent/watcher.h"
#include "berth/answers/answers.h"
#include "berth/base/text.h"
#include "berth/cli/past.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/lab_agent_link.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/runner.h"
#include "berth/lease/session.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/timeline/picture.h"
#include "berth/view/listing.h"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

// Longer than release and cancel wait by themselves.
constexpr std::chrono::milliseconds kPerformWithin = 20s;
constexpr std::size_t kLongestAnswer = 1000;

/// The first line that berth printed, without its name.
std::string answer_of(const std::vector<std::string>& words) {
  const auto run = [&]() -> Result<std::string> {
    BERTH_LET(auto program, command::program_path());
    BERTH_LET(const auto said,
              command::ask_program(std::move(program), words, kPerformWithin, kLongestAnswer));
    std::string line = command::first_line(said.out.empty() ? said.err : said.out);
    if (!said.ending) return "it goes on: " + line;
    return line.empty() ? (said.ending->exit_status == 0 ? "done" : sys::to_text(*said.ending)) : line;
  };
  auto answer = run();
  return answer ? *std::move(answer) : printable(answer.error().message);
}

}  // namespace

class TopLooker::Body {
 public:
  Body(Options options, command::Environment& environment, sys::Descriptor event)
      : options_(std::move(options)),
        environment_(environment),
        event_(std::move(event)),
        user_(sys::user_name(::geteuid())) {}

  void begin() {
    sys::begin_detached([this] { keep_looking(); });
  }

  int descriptor() const { return event_.get(); }

  News take() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(event_.get(), &count, sizeof count);
    const std::scoped_lock lock(mutex_);
    return std::exchange(news_, {});
  }

  void look_now() {
    const std::scoped_lock lock(mutex_);
    due_ = true;
    wake_.notify_one();
  }

  void perform(std::vector<std::string> words) {
    const std::scoped_lock lock(mutex_);
    errand_ = std::move(words);
    due_ = true;
    wake_.notify_one();
  }

 private:
  [[noreturn]] void keep_looking() {
    while (true) {
      auto sight = std::make_shared<const view::TopSight>(look());
      std::unique_lock lock(mutex_);
      news_.sight = std::move(sight);
      tell_of_news();
      wake_.wait_for(lock, std::chrono::seconds(options_.every_s), [this] { return due_; });
      due_ = false;
      const std::vector<std::string> words = std::exchange(errand_, {});
      lock.unlock();
      if (words.empty()) continue;
      std::string said = answer_of(words);
      lock.lock();
      news_.answer = view::TopAnswer{words, std::move(said)};
      tell_of_news();
    }
  }

  void tell_of_news() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
  }

  view::TopSight look() {
    view::TopSight sight;
    sight.is_lab = !options_.hosts.empty();
    sight.every_s = options_.every_s;
    sight.uid = ::geteuid();
    sight.user = user_;
    if (sight.is_lab) add_order(sight);
    sight.hosts = sight.is_lab ? hosts::look_at_hosts(options_.hosts) : Hosts{look_here(sight)};
    add_jobs(sight);
    view::remember(trends_, sight.hosts, std::time(nullptr), options_.every_s);
    sight.trends = trends_;
    add_hours(sight);
    return sight;
  }

  std::shared_ptr<const Host> look_here(view::TopSight& sight) {
    Host host{.name = agent::own_hostname(), .seen_s = seen_s_, .report = last_};
    auto report = report_here(sight);
    if (report) {
      host.seen_s = seen_s_ = std::time(nullptr);
      host.report = last_ = std::make_shared<const HostReport>(*std::move(report));
    } else {
      host.error = report.error().message;
    }
    return std::make_shared<const Host>(std::move(host));
  }

  Result<HostReport> report_here(view::TopSight& sight) {
    BERTH_LET(auto domain, leasing::find_domain({}));
    sight.own = domain.outermost();
    sight.notes = domain.warnings;
    BERTH_LET(const auto session,
              leasing::Session::open_at(leasing::machine_around(std::move(domain)),
                                        environment_.access(options_.source), MaskUse::ignore));
    BERTH_LET(auto world, session.look(Request(), view::readings_for_table()));
    for (std::string& note : leasing::notes_on(world)) sight.notes.push_back(std::move(note));
    idle_.look(world.ledger, world.facts);
    return answers::host_report(std::move(world), idle_, command::Environment::style_of(STDOUT_FILENO));
  }

  static void add_order(view::TopSight& sight) {
    auto order = hosts::order_of_lab();
    if (!order) return sight.notes.push_back(order.error().message);
    sight.order = *std::move(order);
  }

  /// The past changes slowly, and asking for it takes a process. The first look does not wait for
  /// it.
  void renew_past(std::int64_t now_s) {
    constexpr std::int64_t kEvery = 60;
    if (past_asked_s_ == 0) {
      past_asked_s_ = now_s - kEvery;
      return;
    }
    if (std::abs(now_s - past_asked_s_) < kEvery) return;
    past_asked_s_ = now_s;
    auto past = known_past({}, TimelineSpan().back_s);
    past_ = past ? std::make_shared<const RecordedLeases>(*std::move(past)) : nullptr;
  }

  void add_hours(view::TopSight& sight) {
    if (sight.is_lab || !sight.hosts.front()->report) return;
    const std::int64_t now_s = std::time(nullptr);
    renew_past(now_s);
    const auto line = std::make_shared<const Timeline>(
        timeline_of(*sight.hosts.front()->report, past_.get(), {.now_s = now_s}));
    sight.past = past_;
    sight.hours = [line, uid = sight.uid](const view::Style& style, bool ascii) {
      std::vector<view::TopHours> rows;
      for (const std::string& answer : timeline::answers(*line, uid, style))
        rows.push_back({"", {{view::cut(answer, style.width)}}});
      for (timeline::PictureRow& each : timeline::picture(*line, uid, style, ascii))
        rows.push_back({std::move(each.label), std::move(each.parts)});
      return rows;
    };
  }

  void add_jobs(view::TopSight& sight) const {
    const auto spool = jobs::open_spool();
    if (!spool) return sight.notes.push_back(spool.error().message);
    std::string told;
    auto jobs = all_listed(*spool, told);
    if (!jobs) return sight.notes.push_back(jobs.error().message);
    sight.jobs = *std::move(jobs);
    if (!told.empty()) sight.notes.push_back(told.substr(0, told.find('\n')));
  }

  Options options_;
  command::Environment& environment_;
  sys::Descriptor event_;
  std::string user_;
  // Of the thread alone.
  IdleTimes idle_;
  view::Trends trends_;
  std::shared_ptr<const HostReport> last_;
  std::optional<std::int64_t> seen_s_;
  std::shared_ptr<const RecordedLeases> past_;
  std::int64_t past_asked_s_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool due_ = false;
  std::vector<std::string> errand_;
  News news_;
};

Result<std::unique_ptr<TopLooker>> TopLooker::start(Options options, command::Environment& environment) {
  sys::Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return sys::fail_errno("preparing to look");
  auto body = std::make_unique<Body>(std::move(options), environment, std::move(event));
  body->begin();
  return std::unique_ptr<TopLooker>(new TopLooker(std::move(body)));
}

TopLooker::TopLooker(std::unique_ptr<Body> body) : body_(std::move(body)) {}
// The thread goes on until the process ends, and uses it.
TopLooker::~TopLooker() {
  [[maybe_unused]] const Body* const kept = body_.release();
}

int TopLooker::descriptor() const {
  return body_->descriptor();
}
TopLooker::News TopLooker::take() {
  return body_->take();
}
void TopLooker::look_now() {
  body_->look_now();
}
void TopLooker::perform(std::vector<std::string> words) {
  body_->perform(std::move(words));
}

}  // namespace berth::cli
