#include "berth/agent/hosts_pages.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::agent {
namespace {

/// The parts of all hosts, which each answer to a question is made from.
struct Roll {
  Hosts hosts;
};

/// All answers share the parts: nothing is copied, however many clients ask.
http::Page all_hosts(const std::vector<PostedHost>& posted, const view::HostsHead& head,
                     const Totals& totals) {
  static const http::Part kBetween = http::make_part(",");
  auto [start, end] = view::around_hosts(head, totals);
  auto parts = std::make_shared<http::Parts>();
  parts->reserve(2 * posted.size() + 2);
  parts->push_back(http::make_part(std::move(start)));
  for (const PostedHost& each : posted) {
    if (parts->size() > 1) parts->push_back(kBetween);
    parts->push_back(each.entry);
  }
  parts->push_back(http::make_part(std::move(end)));
  http::Page page{200, http::kJson, nullptr};
  page.parts = std::move(parts);
  page.tag = fmt::format("\"n{}\"", head.number);
  return page;
}

http::Page match(const Roll& roll, const http::Parameters& parameters) {
  const auto filter = parameters.find("filter");
  if (filter == parameters.end())
    return http::refusal(
        400, "needs ?filter= and an expression, as in docs/expressions.md: name~A100 and free>=20G");
  const auto expression = Expression::parse(filter->second);
  if (!expression) return http::refusal(400, expression.error().message);
  return http::make_page(200, http::kJson, view::match_json(matching(roll.hosts, *expression)));
}

}  // namespace

PostedHost post(Host host, const http::Part& entry, std::uint64_t number,
                const std::optional<HostChange>& change) {
  static const http::Part kEnd = http::make_part("\n\n");
  static const http::Part kHost = http::make_part("event: host\ndata: ");
  // The second event has no id: a client that goes on from an id must have all that was published
  // before, as it has after a summary.
  PostedHost posted{
      .host = std::make_shared<const Host>(std::move(host)),
      .entry = entry,
      .event = {number, {http::make_part(fmt::format("event: host\nid: {}\ndata: ", number)), entry, kEnd}},
      .change = {number, {kHost, entry, kEnd}},
  };
  if (change) {
    static const http::Part kChange = http::make_part("event: change\ndata: ");
    posted.change.change.emplace(change->since, http::Parts{kChange, change->text, kEnd});
  }
  return posted;
}

void publish_hosts(const std::vector<PostedHost>& posted, const view::HostsHead& head,
                   http::Published& published) {
  auto roll = std::make_shared<Roll>();
  for (const PostedHost& each : posted) roll->hosts.push_back(each.host);
  const Totals totals = totals_of(roll->hosts);

  const http::Part summary =
      http::make_part(fmt::format("event: summary\nid: {}\ndata: {}\n", head.number,
                                  view::hosts_summary_json(head, roll->hosts, totals)));
  std::optional<http::Frame> line;
  if (head.queue_number != 0)
    line = http::Frame{
        head.queue_number,
        {http::make_part(fmt::format("event: line\ndata: {}\n", view::lab_queue_json(head.queue)))}};
  const auto stream = [&](std::string_view path, http::Frame PostedHost::* frame) {
    std::vector<http::Frame> frames;
    frames.reserve(posted.size() + 2);
    for (const PostedHost& each : posted) frames.push_back(each.*frame);
    if (line) frames.push_back(*line);
    std::ranges::sort(frames, {}, &http::Frame::number);
    frames.push_back({head.number, {summary}});
    published.streams[std::string(path)] = std::move(frames);
  };
  stream("/api/v1/hosts/events", &PostedHost::event);
  stream("/api/v1/hosts/changes", &PostedHost::change);

  published.pages["/api/v1/hosts"] = all_hosts(posted, head, totals);
  published.questions["/api/v1/match"] = [roll](const http::Parameters& parameters) {
    return match(*roll, parameters);
  };
}

}  // namespace berth::agent
