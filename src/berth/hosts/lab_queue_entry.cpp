#include "berth/hosts/lab_queue_entry.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/hosts/far_command.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenTries = 1s;
// An agent that is started again is there within this time. A request without a place does not wait
// longer, since the agent may never come.
constexpr auto kPatienceForFirst = 30s;

bool is_of_a_restart(const Error& error) {
  return error.os_error == ECONNREFUSED || error.os_error == ENOENT;
}

}  // namespace

Result<LabQueueEntry> LabQueueEntry::take(std::string socket, unsigned lane, unsigned gpus,
                                          std::vector<std::string> hosts) {
  BERTH_LET(const auto secret, secret_mark());
  // Of "berth-0123…\n" the digits.
  const std::size_t digits = secret.find('-') + 1;
  LabQueueEntry entry(std::move(socket), secret.substr(digits, secret.size() - digits - 1), lane, gpus,
                      std::move(hosts));
  auto link = LabAgentLink::open(entry.path_);
  if (!link && !is_of_a_restart(link.error())) return std::unexpected(link.error());
  if (!link) {
    entry.awaits_first_ = {std::move(link).error(), std::chrono::steady_clock::now() + kPatienceForFirst};
    return entry;
  }
  entry.link_ = *std::move(link);
  entry.say_all();
  return entry;
}

void LabQueueEntry::add_to(std::vector<pollfd>& polled) const {
  if (link_) polled.push_back({link_->descriptor(), link_->wants(), 0});
}

std::optional<std::chrono::steady_clock::time_point> LabQueueEntry::next_deadline() const {
  if (link_) return std::nullopt;
  return next_try_;
}

LabQueueEntry::News LabQueueEntry::poll() {
  News news;
  if (!link_) come_back();
  if (!link_) {
    tell_absence(news);
    return news;
  }
  if (awaits_first_) news.absent = "";
  awaits_first_.reset();
  link_->attend();
  while (const auto words = link_->next()) {
    const std::string& word = words->front();
    const std::string& rest = words->back();
    if (word == "open") {
      news.opened.push_back(rest);
      let_go_.erase(rest);
    } else if (word == "answer") {
      // The agent ignores a host that the request has left meanwhile.
      if (std::ranges::find(hosts_, rest) != hosts_.end()) link_->send("here " + rest);
    } else if (word == "close") {
      news.closed.push_back(rest);
    } else if (word == "limit") {
      news.limit = printable(rest);
    } else if (word == "yes") {
      news.yes = rest;
    } else if (word == "place") {
      std::size_t position = 0;
      std::from_chars(rest.data(), rest.data() + rest.size(), position);
      news.position = position;
    } else if (word == "silent") {
      news.silent = printable(rest);
    } else if (word == "heard") {
      news.silent = "";
    } else if (word == "no") {
      news.ended = Error{ErrorCode::failure, fmt::format("the queue of the lab: {}", printable(rest))};
    }
  }
  if (!link_->has_ended()) return news;
  link_.reset();
  next_try_ = std::chrono::steady_clock::now() + kBetweenTries;
  return news;
}

void LabQueueEntry::tell_absence(News& news) {
  if (!awaits_first_) return;
  if (!std::exchange(awaits_first_->is_told, true)) news.absent = awaits_first_->why.message;
  if (std::chrono::steady_clock::now() >= awaits_first_->until) news.ended = awaits_first_->why;
}

void LabQueueEntry::joined(const std::string& host) {
  if (joined_.insert(host).second && link_) link_->send("joined " + host);
}

void LabQueueEntry::left(const std::string& host) {
  if (std::erase(hosts_, host) == 0) return;
  joined_.erase(host);
  let_go_.erase(host);
  if (start_on_ == host) start_on_.clear();
  if (link_) link_->send("left " + host);
}

void LabQueueEntry::let_go(const std::string& host) {
  joined_.erase(host);
  if (start_on_ == host) start_on_.clear();
  let_go_.insert(host);
  if (link_) link_->send("closed " + host);
}

void LabQueueEntry::ask_to_start(const std::string& host) {
  start_on_ = host;
  if (link_) link_->send("start " + host);
}

void LabQueueEntry::come_back() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_try_) return;
  next_try_ = now + kBetweenTries;
  // The command whose streams we pass on waits for nothing here.
  auto link = LabAgentLink::open(path_, 0s);
  if (!link) return;
  link_ = *std::move(link);
  say_all();
}

void LabQueueEntry::say_all() {
  if (hosts_.empty()) return;
  const std::string wait = fmt::format("wait {} {} {} {}", mark_, lane_, fmt::join(hosts_, ","), gpus_);
  if (!runs_on_.empty()) return link_->send(fmt::format("{} {}", wait, runs_on_));
  link_->send(wait);
  for (const std::string& host : joined_) link_->send("joined " + host);
  for (const std::string& host : let_go_) link_->send("closed " + host);
  if (!start_on_.empty()) link_->send("start " + start_on_);
}

}  // namespace berth::hosts
