#include "berth/hosts/lab_queue_entry.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "berth/sys/random_word.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenTries = 1s;

bool is_of_a_restart(const Error& error) {
  return error.os_error == ECONNREFUSED || error.os_error == ENOENT;
}

}  // namespace

Result<LabQueueEntry> LabQueueEntry::take(std::string socket, unsigned lane, unsigned gpus,
                                          std::vector<std::string> hosts) {
  BERTH_LET(auto mark, sys::random_word());
  LabQueueEntry entry(std::move(socket), std::move(mark), lane, gpus, std::move(hosts));
  auto link = LabAgentLink::open(entry.path_);
  if (!link && !is_of_a_restart(link.error())) return std::unexpected(link.error());
  if (!link) {
    entry.absence_ = {std::move(link).error()};
    return entry;
  }
  entry.link_ = *std::move(link);
  entry.say_all();
  return entry;
}

void LabQueueEntry::add_to(std::vector<pollfd>& polled) const {
  if (link_) polled.push_back({link_->descriptor(), link_->wants(), 0});
}

sys::Deadline LabQueueEntry::next_deadline() const {
  if (link_) return std::nullopt;
  return next_try_;
}

std::vector<caller::What> LabQueueEntry::poll() {
  std::vector<caller::What> said;
  if (!link_) come_back();
  if (!link_) {
    if (absence_ && !std::exchange(absence_->is_told, true))
      said.emplace_back(caller::AgentIsMissing{absence_->why});
    return said;
  }
  if (std::exchange(absence_, std::nullopt)) said.emplace_back(caller::AgentIsThere{});
  link_->attend();
  while (const auto line = link_->next()) {
    const auto& [word, rest] = *line;
    if (word == "open") let_go_.erase(rest);
    // The agent ignores a host that the request has left meanwhile.
    if (word == "answer" && std::ranges::find(hosts_, rest) != hosts_.end()) link_->send("here " + rest);
    if (auto what = caller::said_by_agent(word, rest)) said.push_back(*std::move(what));
  }
  if (!link_->has_ended()) return said;
  link_.reset();
  next_try_ = std::chrono::steady_clock::now() + kBetweenTries;
  return said;
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
  // If the request closed a host that it has left, an agent of an older version would end its
  // entry.
  if (std::ranges::find(hosts_, host) == hosts_.end()) return;
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
