#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "berth/hosts/model/caller_step.h"

namespace berth::hosts::caller {

/// What a caller does with its hosts, whatever has happened: how it connects, joins and leaves
/// them, and what becomes of its entry in the lab queue then.
class CallerDeeds {
 protected:
  CallerDeeds(State state, SteadyTime now) : state_(std::move(state)), now_(now) {}

  Step end();

  void leave(std::size_t host, const Error& why);
  /// Until it is opened again.
  void let_go(std::size_t host);
  void asks_no_more(std::size_t host);

  void happen(std::size_t host, host_selection::Event what);
  void take(host_selection::Step step);
  void disconnect(std::size_t host);
  /// The first answer has come, unless one has before.
  void gather(Window& window) const;

  // --- what is known

  bool has_lab() const { return !std::holds_alternative<NoLab>(state_.entry); }
  /// nullptr: it has none.
  Queued* queued() { return std::get_if<Queued>(&state_.entry); }
  const Queued* queued() const { return std::get_if<Queued>(&state_.entry); }

  /// nullptr: it is not connected.
  Link* link_of(std::size_t host);
  bool has_greeted(std::size_t host);
  /// nullptr also if it has not greeted.
  Link* link_in_queue(std::size_t host);

  bool is(std::size_t host, host_selection::HostState state) const {
    return state_.selection.hosts[host].state == state;
  }
  std::string name_of(std::size_t host) const { return name_in_lab(state_.selection.hosts[host].host); }
  std::vector<std::size_t> hosts_named(std::string_view name) const;

  void act(Action action) { actions_.push_back(std::move(action)); }

  State state_;
  SteadyTime now_;
  std::vector<std::size_t> awaited_{};  ///< the hosts for which it is to enter the lab queue
  std::vector<Action> actions_{};

 private:
  bool is_let_go_for_a_while(std::size_t host, const Error& why);
  void take(const host_selection::Message& message);
  void connect(std::size_t host);
};

}  // namespace berth::hosts::caller
