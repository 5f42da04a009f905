#include "services.h"

#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"
#include "berth/timeline/model/timeline.h"
#include "berth/view/jobs.h"
#include "berth/view/usage.h"

namespace berth::serve {
namespace {

/// `read` makes a question of the parameters.
template <class Read>
http::Service service(history::History& history, const Read& read) {
  return [&history, read](const http::Call& call, http::Reply reply) {
    auto question = read(call.parameters);
    if (!question) {
      reply(http::refusal(400, question.error().message));
      return;
    }
    history.ask(std::move(*question), [reply = std::move(reply)](history::HistoryAnswer answer) {
      http::Page page = http::make_page(answer.http_status, http::kJson, std::move(answer.json));
      if (page.status != 200) page.tag.clear();
      reply(std::move(page));
    });
  };
}

}  // namespace

http::ByPath<http::Service> history_services(history::History& history, const std::string& hostname) {
  http::ByPath<http::Service> services;
  services["/api/v1/history"] = service(history, device_question);
  services["/api/v1/hosts/" + hostname + "/history"] = services["/api/v1/history"];
  services["/api/v1/usage"] = service(history, usage_question);
  services["/api/v1/past-leases"] = service(history, leases_question);
  return services;
}

namespace {

constexpr std::chrono::seconds kKept{1};
constexpr std::size_t kMostJobs = 1000;
constexpr std::size_t kMostLines = 200;
constexpr std::size_t kMostBytes = 64 * 1024;
constexpr std::string_view kText = "text/plain; charset=utf-8";

/// The text of a page, or why there is none.
http::Page page_of(std::string_view type, Result<std::string> text) {
  return text ? http::make_page(200, type, *std::move(text)) : http::refusal(503, text.error().message);
}

Result<std::string> newest_jobs() {
  BERTH_LET(const auto spool, jobs::open_spool());
  std::string unread;
  BERTH_LET(auto tasks, jobs::all_listed(spool, unread));
  if (tasks.size() > kMostJobs) tasks.erase(tasks.begin(), tasks.end() - kMostJobs);
  return view::jobs_json(tasks, view::Layout::line);
}

Result<std::string> tasks_of_job(const std::string& word) {
  BERTH_LET(const auto spool, jobs::open_spool());
  BERTH_LET(auto named, jobs::named_jobs(spool, {word}));
  std::string unread;
  auto tasks = jobs::listed_tasks(spool, std::move(named), unread);
  if (tasks.size() > kMostJobs) tasks.resize(kMostJobs);
  return view::jobs_json(tasks, view::Layout::line);
}

/// A thread of the pool must not throw: that would end the server.
template <class Work>
http::Page tried(Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return http::refusal(503, std::string("it could not be worked out here: ") + error.what());
  }
}

}  // namespace

http::Page JobServices::jobs() {
  if (kept_ && std::chrono::steady_clock::now() < kept_until_) return *kept_;
  kept_ = page_of(http::kJson, newest_jobs());
  kept_until_ = std::chrono::steady_clock::now() + kKept;
  return *kept_;
}

http::Page JobServices::log(const http::Parameters& parameters) {
  const auto word = parameters.find("job");
  const auto id = word == parameters.end() ? std::nullopt : task_id_from_text(word->second);
  if (!id || parameters.size() > 1)
    return http::refusal(400,
                         "job must be the number of a job, or of a task of an array: ?job=12 or ?job=12.7");
  const auto spool = jobs::open_spool();
  if (!spool) return http::refusal(503, spool.error().message);
  const auto job = jobs::job_named(*spool, to_text(*id));
  if (!job) return http::refusal(503, job.error().message);
  if (!*job) return http::refusal(404, "there is no such job of the user who runs this server");
  const auto tasks = (*job)->tasks();
  if (tasks.size() != 1)
    return http::refusal(400, "it is an array: ask for one of its tasks, as in ?job=12.7");
  return page_of(kText, jobs::end_of_output(spool->output_path(tasks.front()), kMostLines, kMostBytes));
}

http::ByPath<http::Service> JobServices::services() {
  http::ByPath<http::Service> services;
  services["/api/v1/jobs"] = [this](const http::Call& call, http::Reply reply) {
    // No error: whoever shows a page must be able to ask whether there is something to show.
    if (!told_) return reply(http::make_page(200, http::kJson, "null\n"));
    if (const auto word = call.parameters.find("job"); word != call.parameters.end()) {
      asio::post(thread_, [word = word->second, reply = std::move(reply)] {
        reply(tried([&] { return page_of(http::kJson, tasks_of_job(word)); }));
      });
      return;
    }
    asio::post(thread_, [this, reply = std::move(reply)] { reply(tried([this] { return jobs(); })); });
  };
  services["/api/v1/job-log"] = [this](const http::Call& call, http::Reply reply) {
    if (!told_) return reply(http::refusal(404, "this server shows no jobs: it runs without --own-jobs"));
    asio::post(thread_, [parameters = call.parameters, reply = std::move(reply)] {
      reply(tried([&] { return log(parameters); }));
    });
  };
  return services;
}

namespace {

// Of steps of five minutes: what is older than this by less is hardly seen.
constexpr std::int64_t kRenewEvery = 30;

}  // namespace

void PastOfTimeline::renew(history::History& history, std::int64_t now_s) {
  // Also after the clock was set.
  if (std::abs(now_s - asked_s_) < kRenewEvery) return;
  asked_s_ = now_s;
  history.ask(LeasesQuestion{.since_s = TimelineSpan().back_s, .points = kTimelinePoints},
              [self = shared_from_this()](const history::HistoryAnswer& answer) {
                std::shared_ptr<const RecordedLeases> told;
                if (answer.http_status == 200) {
                  if (auto read = view::recorded_leases_from_json(answer.json))
                    told = std::make_shared<const RecordedLeases>(*std::move(read));
                }
                const std::scoped_lock lock(self->mutex_);
                self->told_ = std::move(told);
              });
}

std::shared_ptr<const RecordedLeases> PastOfTimeline::told() const {
  const std::scoped_lock lock(mutex_);
  return told_;
}

}  // namespace berth::serve
