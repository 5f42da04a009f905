#include "berth/agent/hosts_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/render/json.h"

namespace berth::serve {
namespace {

/// What the answers to questions are made of, whenever they are asked.
struct Roll {
  std::vector<PostedHost> posted;
  Hosts hosts;
  Totals totals;
  render::HostsHead head;
};

Page all_hosts(const Roll& roll) {
  std::vector<std::string_view> entries;
  for (const PostedHost& each : roll.posted) entries.push_back(each.entry());
  return make_page(200, kJson, render::hosts_json(roll.head, entries, roll.totals));
}

Page match(const Roll& roll, const Parameters& parameters) {
  const auto filter = parameters.find("filter");
  if (filter == parameters.end())
    return refusal(400,
                   "needs ?filter= and an expression, as in docs/expressions.md: name~A100 and free>=20G");
  const auto expression = Expression::parse(filter->second);
  if (!expression) return refusal(400, expression.error().message);
  return make_page(200, kJson, render::match_json(matching(roll.hosts, *expression)));
}

}  // namespace

PostedHost post(Host host, std::string_view entry, std::uint64_t number) {
  std::string text = fmt::format("event: host\nid: {}\ndata: ", number);
  const std::size_t begin = text.size();
  text += entry;
  text += "\n\n";
  return {std::make_shared<const Host>(std::move(host)),
          {number, std::make_shared<const std::string>(std::move(text))},
          begin,
          entry.size()};
}

void publish_hosts(const std::vector<PostedHost>& posted, const render::HostsHead& head,
                   Published& published) {
  auto roll = std::make_shared<Roll>(Roll{posted, {}, {}, head});
  for (const PostedHost& each : posted) roll->hosts.push_back(each.host);
  roll->totals = totals_of(roll->hosts);

  std::vector<Frame>& events = published.streams["/api/v1/hosts/events"];
  for (const PostedHost& each : posted) events.push_back(each.event);
  std::ranges::sort(events, {}, &Frame::number);
  std::string summary = fmt::format("event: summary\nid: {}\ndata: {}\n", head.number,
                                    render::hosts_summary_json(head, roll->hosts, roll->totals));
  events.push_back({head.number, std::make_shared<const std::string>(std::move(summary))});

  published.questions["/api/v1/hosts"] = [roll](const Parameters&) { return all_hosts(*roll); };
  published.questions["/api/v1/match"] = [roll](const Parameters& parameters) {
    return match(*roll, parameters);
  };
}

}  // namespace berth::serve
