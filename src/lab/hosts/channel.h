#pragma once

#include <poll.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/hosts/envoy_messages.h"
#include "berth/hosts/ssh.h"
#include "berth/request/request.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

namespace berth::hosts {

/// One ssh to one host, with an envoy at its other end. Nothing here blocks, except why_ended if it
/// is asked too soon. Move-only.
///
/// It may share a kept connection (ssh.h). What is wrong with that, before the envoy
/// speaks, costs a connection of its own and nothing else. Later the connection may end with
/// whoever keeps it: then `connect_alone`, and ask again.
class Channel {
 public:
  Channel(Channel&&) noexcept = default;
  Channel& operator=(Channel&&) = delete;
  /// Closes ssh's input, so that the envoy and ssh end. It does not kill ssh, because others may
  /// share its connection. But a kept connection ends if what runs at its other end may never end.
  ~Channel();

  /// `terminal`: the command there gets a terminal, and the connection is its own. Error: ssh
  /// cannot be started. If the host's ssh server takes no more connections at this moment, ssh is
  /// started again after a while, three times at most.
  static Result<Channel> open(LabHost host, const SshProgram& ssh, bool terminal);

  /// Whether the connection is, or may be, one that others have too.
  bool is_shared() const { return shared_.has_value() || asks_settings_; }
  /// Leaves all that was said, and starts again with a connection of its own.
  Result<void> connect_alone();

  const LabHost& host() const { return host_; }
  std::chrono::steady_clock::time_point opened_at() const { return opened_at_; }

  /// Adds text that is to go to the envoy.
  void send(std::string_view text) { to_send_ += text; }
  /// How much of it has not gone yet, in bytes.
  std::size_t unsent() const { return to_send_.size(); }
  /// Dismisses the envoy: it sees the end of its input, and ends.
  void let_go();

  /// The next whole message; the first is the envoy's hello. Not to be called after CommandBegun.
  /// Error: what came is no message.
  std::optional<Result<EnvoyMessage>> next_message();
  /// What has come on the streams after the messages.
  std::string take_output() { return std::exchange(output_, ""); }
  std::string take_errors() { return std::exchange(errors_, ""); }
  /// Nothing more comes on its standard output. What BERTH_SSH names may still live.
  bool output_has_ended() const { return !from_ && !next_try_; }
  /// ssh has ended, or did not end when it was told to, and is not started again.
  bool has_ended() const { return output_has_ended() && !end_by_; }
  /// When `keep_time` has something to do, as far as is known.
  sys::Deadline next_deadline() const;
  /// Starts ssh again, or tells it to end, if it is time.
  void keep_time();
  bool errors_have_ended() const { return !errors_from_; }
  bool has_greeted() const { return greeted_; }
  /// Why ssh has ended. REQUIRES: output_has_ended(). Before has_ended() it waits for the end, some
  /// seconds at most.
  Error why_ended();

  /// Sets the window size of the command's terminal.
  void resize(unsigned short rows, unsigned short columns) const;

  /// Adds the descriptors that it waits for; without its output, if that is not wanted now.
  void add_to(std::vector<pollfd>& polled, bool wants_output) const;
  /// Reads and writes what the poll has found.
  void attend(std::span<const pollfd> polled);

 private:
  Channel(LabHost host, SshProgram program, bool terminal)
      : host_(std::move(host)), program_(std::move(program)), terminal_(terminal) {}
  Result<void> ask_settings();
  void take_settings();
  Result<void> start();
  bool may_never_end() const;
  void await_end();
  void look_for_end();
  void start_again_if_it_helps();
  void write_some();
  static bool read_into(sys::Descriptor& from, std::string& text);

  LabHost host_;
  SshProgram program_;
  bool terminal_;
  std::optional<sys::Child> ssh_;
  std::optional<ProcessEnd> ending_;
  sys::Deadline end_by_;      ///< its streams have ended, and it is to end by then
  sys::Descriptor exit_;      ///< is readable at that end
  bool told_to_end_ = false;  ///< by a signal
  sys::Descriptor to_;        ///< ssh's standard input; of a terminal, none: from_ is both
  sys::Descriptor from_;      ///< its standard output, or our side of its terminal
  sys::Descriptor errors_from_;
  bool asks_settings_ = false;  ///< ssh_ tells what it would do, and connects to nothing
  std::optional<KeptConnection> shared_{};
  bool was_kept_ = false;  ///< by an earlier ssh, when this one began
  bool greeted_ = false;
  bool answered_ = false;  ///< the envoy has said more than its hello
  bool let_go_ = false;
  unsigned tries_ = 0;
  sys::Deadline next_try_;
  std::string to_send_, output_, errors_;
  std::chrono::steady_clock::time_point opened_at_ = std::chrono::steady_clock::now();
};

/// Waits until something has come on a channel or on one of `others`, or until `until`, and lets
/// the channels read and write. `others` get what poll found.
void wait_on(const std::vector<Channel*>& channels, std::vector<pollfd>& others, sys::Deadline until);
/// The same for one channel, whose output may be unwanted for now.
void wait_on(Channel& channel, std::vector<pollfd>& others, sys::Deadline until, bool wants_output);

}  // namespace berth::hosts
