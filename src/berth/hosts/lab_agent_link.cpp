#include "berth/hosts/lab_agent_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "berth/sys/system_error.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostFromAgent = 1U << 20U;
constexpr auto kPatienceWithAgent = 10s;

}  // namespace

Result<LabAgentLink> LabAgentLink::open(const std::string& socket, std::chrono::seconds patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path))
    return fail(ErrorCode::usage, fmt::format("{}: the path is too long for a socket", socket));
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

std::optional<AgentWords> LabAgentLink::next() {
  const std::size_t end = come_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  AgentWords words;
  std::string_view line = std::string_view(come_).substr(0, end);
  // The word, and what it says, which may have spaces.
  const std::size_t space = std::min(line.find(' '), line.size());
  words.emplace_back(line.substr(0, space));
  words.emplace_back(line.substr(std::min(space + 1, line.size())));
  come_.erase(0, end + 1);
  return words;
}

Result<std::vector<AgentWords>> ask_agent(const std::string& socket, std::string_view question) {
  BERTH_LET(auto link, LabAgentLink::open(socket));
  link.send(question);
  std::vector<AgentWords> all;
  const auto until = std::chrono::steady_clock::now() + kPatienceWithAgent;
  while (std::chrono::steady_clock::now() < until) {
    link.attend();
    while (auto words = link.next()) {
      if (words->front() == "end") return all;
      all.push_back(*std::move(words));
      if (all.back().front() == "no") return all;
    }
    if (link.has_ended()) break;
    pollfd polled{link.descriptor(), link.wants(), 0};
    ::poll(&polled, 1, static_cast<int>(std::chrono::milliseconds(1s).count()));
  }
  return fail(ErrorCode::failure, fmt::format("the agent at {} does not answer; look at its log", socket));
}

}  // namespace berth::hosts
