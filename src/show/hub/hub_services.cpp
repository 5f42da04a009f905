#include "berth/hub/hub_services.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/timeline/picture.h"
#include "berth/usage/history_question.h"
#include "berth/usage/usage_total.h"
#include "berth/view/answers_json.h"
#include "berth/view/layout.h"
#include "berth/view/usage.h"

namespace berth::hub {
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
                           std::chrono::milliseconds patience, Answered then) -> net::Task<> {
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
    if (is_whole) kept_ = Kept{asked, page, std::chrono::steady_clock::now() + kKeptFor};
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
