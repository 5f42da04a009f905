#include "berth/hub/hub_pages.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/agent/publish.h"
#include "berth/base/error.h"
#include "berth/hub/model/hub_metrics.h"
#include "berth/net/event_stream.h"
#include "berth/timeline/picture.h"
#include "berth/usage/usage.h"
#include "berth/view/answers_json.h"
#include "berth/view/hosts_reader.h"
#include "berth/view/text.h"
#include "berth/view/usage.h"

namespace berth::hub {
namespace {

MadeRow row_of(HostNews news) {
  return {.host = std::move(news.host), .entry = http::make_part(std::move(news.entry))};
}

MadeRow first_row(const Agent& agent) {
  Host host{.name = agent.name};
  if (agent.peer) host.url = url_of(*agent.peer);
  host.error = agent.refusal.empty() ? kNotAskedYet : agent.refusal;
  std::string entry = view::host_json(host);
  return row_of({std::move(host), std::move(entry)});
}

}  // namespace

MadeRow row_after_asking(const agent::PostedHost& before, const Result<http::Response>& answer,
                         std::int64_t now_s) {
  MadeRow made = row_of(news_after_asking(*before.host, answer, now_s));
  net::pack(made.entry);
  if (std::string change = view::host_change_json(*before.entry.text, *made.entry.text); !change.empty())
    made.change = {before.event.number, http::make_part(std::move(change))};
  return made;
}

MadeRow row_of_failure(const agent::PostedHost& before, std::string error) {
  return row_of(news_of_failure(*before.host, std::move(error)));
}

Polled::Polled(asio::io_context& loop, poller::HostId number, Agent who)
    : id(number), agent(std::move(who)), made(first_row(agent)), bell(loop) {}

poller::WantedHost Polled::named() const {
  if (!agent.refusal.empty()) return {id, poller::Kind::refused};
  return {id, agent.peer ? poller::Kind::far : poller::Kind::own};
}

namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";

/// As nvgpu's master lists its agents.
std::string nvgpu_list(const Hosts& hosts, std::int64_t now_s) {
  std::string text;
  for (const auto& host : hosts) {
    text += text.empty() ? "[" : ",";
    text += host->is_up() ? view::nvgpu_report(host->name, host->report->facts, host->report->ledger, now_s)
                          : view::nvgpu_error(fmt::format("{}: {}", host->name, host->error));
  }
  return text.empty() ? "[]\n" : text + "]\n";
}

bool is_asked(const std::shared_ptr<const Host>& host) {
  return host->error != kNotAskedYet;
}

std::string refusal_of(int status) {
  switch (status) {
    case 401:
      return "it wants a token, and that which it was shown (token-file) is none or another";
    case 404:
      return "no agent of this version of Berth answers there (404 for /api/v1/hosts); start `berth serve` "
             "on it";
    case 421:
      return "it answers to addresses only, for it wants no token: name its address in the URL, or give it a "
             "token";
    default:
      return fmt::format("it answers with the HTTP status {}", status);
  }
}

Result<view::ReportedHost> told_by(const http::Response& response) {
  if (response.status != 200) return fail(ErrorCode::failure, refusal_of(response.status));
  auto told = view::read_hosts(response.body, view::kBoundsOfAgent);
  if (!told) return std::unexpected(context(told.error(), "its answer"));
  if (told->is_hub) return fail(ErrorCode::failure, "that is a hub; name the agents of its hosts instead");
  if (told->hosts.size() != 1) return fail(ErrorCode::failure, "its answer: it tells not of one host");
  return std::move(told->hosts.front());
}

}  // namespace

http::Published publish_hub(const std::vector<agent::PostedHost>& posted, const view::HostsHead& head,
                            const std::string& hostname, const http::Published* own,
                            const view::PollCounts& polls) {
  http::Published published;
  if (own != nullptr) {
    published = *own;
  }
  published.number = head.number;
  publish_hosts(posted, head, published);
  Hosts hosts;
  for (const agent::PostedHost& each : posted) hosts.push_back(each.host);
  const bool ready = std::ranges::all_of(hosts, is_asked);
  published.pages["/healthz"] = http::make_page(200, kText, "ok\n");
  published.pages["/readyz"] =
      http::make_page(ready ? 200 : 503, kText, ready ? "ready\n" : "some hosts have not been asked yet\n");
  const view::HubHealth health{version(), hostname, head.time_s};
  published.pages["/api/v1/health"] = http::make_page(200, http::kJson, view::hub_health_json(health, hosts));

  const std::string of_own = own == nullptr ? "" : *own->pages.at("/metrics").text;
  published.pages.erase("/metrics");
  published.pages.erase("/cluster_status");
  published.questions["/metrics"] = [hosts, of_own, polls](const http::Parameters&) {
    return http::make_page(200, kMetricsText, of_own + view::hub_metrics(hosts, polls));
  };
  published.questions["/cluster_status"] = [hosts, now_s = head.time_s](const http::Parameters&) {
    return http::make_page(200, http::kJson, nvgpu_list(hosts, now_s));
  };
  return published;
}

Host after_asking(const Host& before, const Result<http::Response>& answer, std::int64_t now_s) {
  Host after = before;
  if (!answer) {
    after.error = answer.error().message;
    return after;
  }
  if (answer->status == 304 && before.is_up()) {
    after.seen_s = now_s;
    return after;
  }
  auto told = told_by(*answer);
  if (!told) {
    after.error = told.error().message;
    return after;
  }
  after.error = std::move(told->error);
  if (told->report) after.report = std::move(told->report);
  if (after.is_up()) after.seen_s = now_s;
  return after;
}

HostNews news_of_failure(const Host& before, std::string error) {
  if (before.error == error) return {before, ""};
  Host after = before;
  after.error = std::move(error);
  std::string entry = view::host_json(after);
  return {std::move(after), std::move(entry)};
}

HostNews news_after_asking(const Host& before, const Result<http::Response>& answer, std::int64_t now_s) {
  constexpr std::size_t kMostGrowth = 2;
  constexpr std::size_t kOfShortOnes = 32U
                                       << 10U;  // an older Berth leaves keys out, which ours write as null
  Host after = after_asking(before, answer, now_s);
  if (after.report == before.report && after.error == before.error) return {std::move(after), ""};
  std::string entry = view::host_json(after);
  if (after.report != before.report && entry.size() > kMostGrowth * answer->body.size() + kOfShortOnes)
    return news_of_failure(before, fmt::format("its answer of {} KiB would take {} KiB, and is not shown",
                                               answer->body.size() >> 10U, entry.size() >> 10U));
  return {std::move(after), std::move(entry)};
}

namespace {

constexpr std::string_view kHostsFolder = "/api/v1/hosts/";
constexpr std::string_view kHistoryEnd = "/history";
constexpr const char* kHistoryPath = "/api/v1/history";
constexpr std::string_view kTimelineEnd = "/timeline";
constexpr const char* kTimelinePath = "/api/v1/timeline";
constexpr const char* kUsagePath = "/api/v1/usage";
constexpr int kBadGateway = 502;
constexpr std::size_t kMostGatherings = 2;
constexpr std::chrono::seconds kKeptFor{10};

/// The agent's words for why not, under its own status where that is one of a refusal.
http::Page refusal_by(const std::string& name, const http::Response& response) {
  const int status = response.status >= 400 && response.status < 600 ? response.status : kBadGateway;
  const std::string message = view::message_of_error(response.body);
  return http::refusal(
      status, fmt::format("{}: {}", name,
                          message.empty() ? fmt::format("it answers with HTTP status {}", response.status)
                                          : message));
}

/// The document of an agent, written anew from what could be read of it.
template <class Read, class Write>
http::Page page_from(const std::string& name, const Result<http::Response>& answer, const Read& read,
                     const Write& write) {
  if (!answer) return http::refusal(kBadGateway, fmt::format("{}: {}", name, answer.error().message));
  if (answer->status != 200) return refusal_by(name, *answer);
  const auto told = read(answer->body);
  if (!told) return http::refusal(kBadGateway, fmt::format("{}: its answer: {}", name, told.error().message));
  return http::make_page(200, http::kJson, write(*told, view::Layout::line));
}

}  // namespace

/// The answers so far to a question that goes to many agents.
struct HubServices::UsageCollection {
  UsageBy by = UsageBy::user;
  std::vector<std::pair<std::string, Usage>> told;
  std::vector<std::string> missing;
  std::size_t awaited = 0;
  std::vector<http::Reply> replies;  // of all who ask the same meanwhile
  std::function<void(const http::Page&, bool is_whole)> when_done;

  void take(const std::string& name, const Result<http::Response>& answer) {
    auto usage = answer && answer->status == 200 ? view::usage_from_json(answer->body)
                                                 : Result<Usage>(fail(ErrorCode::failure, "no answer"));
    if (usage && usage->by == by) {
      told.emplace_back(name, std::move(*usage));
    } else {
      missing.push_back(name);
    }
    if (--awaited == 0) end();
  }

  void end() {
    std::ranges::sort(missing);
    const bool is_whole = missing.empty();
    const http::Page page = http::make_page(
        200, http::kJson, view::usage_json(total_usage(by, told, std::move(missing)), view::Layout::line));
    for (const http::Reply& reply : replies) reply(page);
    when_done(page, is_whole);
  }
};

/// It may answer in a thread of its own, and never: its disk can hang.
void HubServices::ask_own(const std::string& path, const http::Parameters& parameters, Answered answered) {
  struct Wait {
    explicit Wait(asio::io_context& loop) : timer(loop) {}
    net::Timer timer;
    Result<http::Response> response = fail(ErrorCode::failure, "its history does not answer in time");
  };
  const auto wait = std::make_shared<Wait>(loop_);
  wait->timer.expires_after(patience_);
  wait->timer.async_wait(
      [wait, answered = std::move(answered)](const boost::system::error_code&) { answered(wait->response); });
  own_.at(path)({path, parameters}, [&loop = loop_, wait](const http::Page& page) {
    asio::post(loop, [wait, response = http::Response{.status = page.status, .body = *page.text}]() mutable {
      wait->response = std::move(response);
      wait->timer.cancel();
    });
  });
}

void HubServices::ask(const Agent& agent, const std::string& path, const http::Parameters& parameters,
                      Answered answered) {
  if (!agent.peer) return ask_own(path, parameters, std::move(answered));
  const auto client = std::make_shared<net::Client>(loop_, sharing_, *agent.peer, most_bytes_);
  const auto question = [](std::shared_ptr<net::Client> one, std::string target,
                           std::chrono::milliseconds patience, Answered then) -> net::Coroutine<> {
    const std::string no_tag;
    const auto answer = co_await one->get(target, no_tag, patience);
    then(answer);
  };
  asio::co_spawn(loop_, question(client, path + http::query_of(parameters), patience_, std::move(answered)),
                 asio::detached);
}

void HubServices::ask_host(const std::vector<AgentNow>& agents, const http::Call& call, http::Reply reply) {
  std::string_view name = call.path;
  name.remove_prefix(std::min(kHostsFolder.size(), name.size()));
  const bool is_timeline = name.ends_with(kTimelineEnd);
  if (!is_timeline && !name.ends_with(kHistoryEnd))
    return reply(
        http::refusal(404, "of a host there are /api/v1/hosts/NAME/history and /api/v1/hosts/NAME/timeline"));
  name.remove_suffix((is_timeline ? kTimelineEnd : kHistoryEnd).size());
  const auto found =
      std::ranges::find_if(agents, [&](const AgentNow& each) { return each.agent->name == name; });
  if (found == agents.end())
    return reply(http::refusal(404, "no host has this name; /api/v1/hosts lists them"));
  const Agent& agent = *found->agent;
  if (!agent.refusal.empty()) return reply(http::refusal(kBadGateway, agent.refusal));
  if (is_timeline) {
    // It is made of the look, not of the history: what was published of this machine has it.
    if (!agent.peer) return reply(http::refusal(404, "of the hub's own machine there is /api/v1/timeline"));
    return ask(agent, kTimelinePath, {},
               [name = agent.name, reply = std::move(reply)](const Result<http::Response>& answer) {
                 reply(page_from(name, answer, timeline::from_json, timeline::to_json));
               });
  }
  if (const auto question = device_question(call.parameters); !question)
    return reply(http::refusal(400, question.error().message));
  ask(agent, kHistoryPath, call.parameters,
      [name = agent.name, reply = std::move(reply)](const Result<http::Response>& answer) {
        reply(page_from(name, answer, view::device_history_from_json, view::device_history_json));
      });
}

void HubServices::ask_usage(const std::vector<AgentNow>& agents, const http::Call& call,
                            const http::Reply& reply) {
  const auto question = usage_question(call.parameters);
  if (!question) return reply(http::refusal(400, question.error().message));
  // Each is a connection to every agent.
  const std::string asked = http::query_of(call.parameters);
  if (const auto same = collections_.find(asked); same != collections_.end()) {
    same->second->replies.push_back(reply);
    return;
  }
  if (kept_ && kept_->asked == asked && std::chrono::steady_clock::now() < kept_->until)
    return reply(kept_->page);
  if (collections_.size() >= kMostGatherings)
    return reply(http::refusal(503, "too many ask at once; ask again in a moment"));
  const auto collection = collections_[asked] = std::make_shared<UsageCollection>();
  collection->by = question->by;
  collection->replies.push_back(reply);
  collection->when_done = [this, asked](const http::Page& page, bool is_whole) {
    if (is_whole) kept_ = KeptPage{asked, page, std::chrono::steady_clock::now() + kKeptFor};
    collections_.erase(asked);
  };
  collection->awaited = 1;  // so that it cannot end before all are asked
  for (const auto& [agent, is_up] : agents) {
    if (!is_up) {
      collection->missing.push_back(agent->name);
      continue;
    }
    ++collection->awaited;
    ask(*agent, kUsagePath, call.parameters,
        [collection, name = agent->name](const Result<http::Response>& answer) {
          collection->take(name, answer);
        });
  }
  if (--collection->awaited == 0) collection->end();
}

}  // namespace berth::hub
