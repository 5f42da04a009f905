#include "berth/hub/polled.h"

#include <utility>

#include "berth/hub/hub_pages.h"
#include "berth/net/gzip.h"

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

poller::Named Polled::named() const {
  if (!agent.refusal.empty()) return {id, poller::Kind::refused};
  return {id, agent.peer ? poller::Kind::far : poller::Kind::own};
}

}  // namespace berth::hub
