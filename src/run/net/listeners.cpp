#include "berth/net/listeners.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::net {
namespace {

bool is_wanted(const Listener& listener, const std::vector<std::pair<std::string, bool>>& wanted) {
  return std::ranges::find(wanted, std::pair(listener.address, listener.network)) != wanted.end();
}

std::string host_of(const Listener& listener) {
  return listener.address.substr(0, listener.address.rfind(':'));
}

}  // namespace

Listeners::Listeners(asio::io_context& io, std::function<void(const Listener&)> accept)
    : io_(io), accept_(std::move(accept)) {}

Result<void> Listeners::listen(const http::Settings& settings) {
  Wanted wanted;
  for (const std::string& address : settings.listen) wanted.emplace_back(address, true);
  if (wanted.empty()) wanted.emplace_back(http::kDefaultAddress, true);
  if (!settings.socket.empty()) wanted.emplace_back(settings.socket, false);
  auto fresh = open_missing(wanted);
  if (!fresh) {
    // A listener that is to be closed may be what blocks its port.
    const std::vector<Left> left = leave_ports_of(wanted);
    if (!left.empty()) fresh = open_missing(wanted);
    if (!fresh) take_back(left);
  }
  if (!fresh) return std::unexpected(fresh.error());
  std::erase_if(open_, [&](const Listener& each) {
    const bool stays = is_wanted(each, wanted);
    if (!stays) each.close();
    return !stays;
  });
  take(std::move(*fresh));
  return {};
}

Result<std::list<Listener>> Listeners::open_missing(const Wanted& wanted) const {
  std::list<Listener> fresh;
  for (const auto& [address, network] : wanted) {
    if (std::ranges::find(open_, address, &Listener::address) != open_.end()) continue;
    auto listener = network ? listen_on_network(io_, address) : listen_on_socket(io_, address);
    if (!listener) {
      for (const Listener& each : fresh) each.close();
      return std::unexpected(listener.error());
    }
    fresh.push_back(std::move(*listener));
  }
  return fresh;
}

/// Closes those of the network that are not wanted and have a port that is.
std::vector<Listeners::Left> Listeners::leave_ports_of(const Wanted& wanted) {
  std::vector<Left> left;
  std::erase_if(open_, [&](const Listener& each) {
    if (!each.network || is_wanted(each, wanted)) return false;
    const std::uint16_t port = each.port();
    const bool is_in_the_way = std::ranges::any_of(wanted, [&](const auto& other) {
      const auto address = http::tcp_address(other.first);
      return other.second && address && address->port == port;
    });
    if (!is_in_the_way) return false;
    left.push_back({each.address, fmt::format("{}:{}", host_of(each), port)});
    each.close();
    return true;
  });
  return left;
}

/// A process that took such a port in this moment keeps it: the error says that the port is taken.
void Listeners::take_back(const std::vector<Left>& left) {
  std::list<Listener> again;
  for (const Left& each : left) {
    auto listener = listen_on_network(io_, each.address_with_port);
    if (!listener) continue;
    listener->address = each.address;
    again.push_back(std::move(*listener));
  }
  take(std::move(again));
}

void Listeners::take(std::list<Listener> fresh) {
  for (const Listener& each : fresh) accept_(each);
  open_.splice(open_.end(), fresh);
}

std::vector<std::string> Listeners::names(bool tls) const {
  std::vector<std::string> names;
  for (const Listener& each : open_) {
    names.push_back(each.network
                        ? fmt::format("{}://{}:{}", tls ? "https" : "http", host_of(each), each.port())
                        : "unix:" + each.address);
  }
  return names;
}

void Listeners::close() {
  for (const Listener& each : open_) each.close();
  open_.clear();
}

}  // namespace berth::net
