#include "berth/hub/hub_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/agent/nvgpu_report.h"
#include "berth/base/version.h"
#include "berth/hub/model/hub_metrics.h"
#include "berth/view/hosts_reader.h"

namespace berth::hub {
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

}  // namespace berth::hub
