#include "berth/hosts/lab_agent_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/sys/file.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostFromAgent = 1U << 20U;
constexpr auto kPatienceWithAgent = 10s;

/// "3 desk1:1234": its place, and where it was asked for.
std::optional<LabStanding> standing_from(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const auto position = number_from_text<std::size_t>(text.substr(0, space));
  if (!position) return std::nullopt;
  return LabStanding{text.substr(space + 1), *position};
}

/// Adds a part of the queue. Gives the place from which on the next part is to be asked for. 0:
/// this was the last.
Result<std::size_t> add_part(LabOrder& order, const std::vector<AgentLine>& answer) {
  std::size_t next = 0;
  for (const auto& [word, rest] : answer) {
    if (word == "silent")
      return fail(ErrorCode::failure, "the store of the lab does not answer: {}", printable(rest));
    if (word == "outside") order.outside = number_from_text<std::size_t>(rest).value_or(0);
    if (word == "more") next = number_from_text<std::size_t>(rest).value_or(0);
    if (word != "stands") continue;
    if (auto standing = standing_from(rest)) order.standing.push_back(*std::move(standing));
  }
  return next;
}

}  // namespace

Result<LabAgentLink> LabAgentLink::open(const std::string& socket, std::chrono::seconds patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path))
    return fail(ErrorCode::usage, "{}: the path is too long for a socket", socket);
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  sys::Descriptor descriptor(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (patience == 0s ? SOCK_NONBLOCK : 0), 0));
  const timeval time{patience.count(), 0};
  ::setsockopt(descriptor.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  if (!descriptor ||
      ::connect(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Error error = sys::system_error(errno, fmt::format("asking the agent at {}", socket));
    error.code = ErrorCode::failure;
    error.message +=
        fmt::format("; the site file has store = \"{}\": is `berth serve --store URL` running here?", socket);
    return std::unexpected(std::move(error));
  }
  ::fcntl(descriptor.get(), F_SETFL, O_NONBLOCK);
  return LabAgentLink(std::move(descriptor));
}

short LabAgentLink::wants() const {
  return static_cast<short>(POLLIN | (to_send_.empty() ? 0 : POLLOUT));
}

void LabAgentLink::send(std::string_view words) {
  to_send_ += fmt::format("{}\n", words);
  write_some();
}

void LabAgentLink::attend() {
  write_some();
  read_some();
}

void LabAgentLink::write_some() {
  while (!to_send_.empty() && !ended_) {
    const ssize_t sent = ::send(socket_.get(), to_send_.data(), to_send_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      ended_ = ended_ || errno != EAGAIN;
      break;
    }
    to_send_.erase(0, static_cast<std::size_t>(sent));
  }
}

void LabAgentLink::read_some() {
  std::array<char, 4096> piece;
  while (come_.size() < kMostFromAgent) {
    const ssize_t got = ::read(socket_.get(), piece.data(), piece.size());
    if (got > 0) {
      come_.append(piece.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    ended_ = ended_ || got == 0 || errno != EAGAIN;
    return;
  }
}

std::optional<AgentLine> LabAgentLink::next() {
  const std::size_t end = come_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string line = come_.substr(0, end);
  come_.erase(0, end + 1);
  const std::size_t space = std::min(line.find(' '), line.size());
  return AgentLine{line.substr(0, space), line.substr(std::min(space + 1, line.size()))};
}

Result<std::vector<AgentLine>> ask_agent(const std::string& socket, std::string_view question) {
  BERTH_LET(auto link, LabAgentLink::open(socket));
  link.send(question);
  std::vector<AgentLine> all;
  const auto until = std::chrono::steady_clock::now() + kPatienceWithAgent;
  while (std::chrono::steady_clock::now() < until) {
    link.attend();
    while (auto line = link.next()) {
      if (line->word == "end") return all;
      all.push_back(*std::move(line));
      if (all.back().word == "no") return all;
    }
    if (link.has_ended()) break;
    pollfd polled{link.descriptor(), link.wants(), 0};
    ::poll(&polled, 1, static_cast<int>(std::chrono::milliseconds(1s).count()));
  }
  return fail(ErrorCode::failure, "the agent at {} does not answer; look at its log", socket);
}

Result<LabOrder> order_of_lab() {
  BERTH_LET(const auto socket, lab_store_socket());
  LabOrder order;
  if (socket.empty()) return order;
  std::size_t from = 0;
  do {
    BERTH_LET(const auto answer, ask_agent(socket, fmt::format("line {}", from)));
    BERTH_LET(const auto next, add_part(order, answer));
    // Parts that do not go forward would never end.
    from = next > from ? next : 0;
  } while (from != 0);
  return order;
}

}  // namespace berth::hosts
