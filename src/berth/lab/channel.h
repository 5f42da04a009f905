#pragma once

#include <poll.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/lab_host.h"
#include "berth/lab/ssh.h"
#include "berth/lab/wire.h"
#include "berth/sys/child.h"
#include "berth/sys/descriptor.h"

namespace berth::lab {

/// One ssh to one host, with an envoy at its other end. Nothing here blocks. Move-only.
class Channel {
 public:
  Channel(Channel&&) noexcept = default;
  Channel& operator=(Channel&&) = delete;
  /// An ssh with an envoy at its other end sees the end of its input, and ends. Others may share its
  /// connection, so it is not killed.
  ~Channel() {
    if (!greeted_) ssh_.kill(SIGTERM);
  }

  /// `terminal`: the command there gets one. Error: ssh cannot be started.
  static Result<Channel> open(LabHost host, const SshProgram& ssh, bool terminal);

  const LabHost& host() const { return host_; }
  std::chrono::steady_clock::time_point opened_at() const { return opened_at_; }

  /// Puts in line what goes to the envoy.
  void send(std::string_view text) { to_send_ += text; }
  /// How much has not gone yet.
  std::size_t unsent() const { return to_send_.size(); }
  /// The envoy is let go: it sees the end of its input, and ends.
  void let_go();

  /// The next whole message, the first being the envoy's hello. Not to be asked after Begun. Error: what came
  /// is no message.
  std::optional<Result<EnvoyMessage>> next_message();
  /// What has come of the streams beyond messages.
  std::string take_output() { return std::exchange(output_, ""); }
  std::string take_errors() { return std::exchange(errors_, ""); }
  /// ssh has ended, or is about to.
  bool has_ended() const { return !from_; }
  bool errors_have_ended() const { return !errors_from_; }
  bool has_greeted() const { return greeted_; }
  /// Why it has. REQUIRES: has_ended(). Takes a moment where ssh does not end by itself.
  Error why_ended();

  /// The window of the command's terminal.
  void resize(unsigned short rows, unsigned short columns) const;

  /// What it waits for; where its output is not wanted now, without that.
  void add_to(std::vector<pollfd>& polled, bool wants_output) const;
  /// Does what the poll found.
  void attend(std::span<const pollfd> polled);

 private:
  Channel(LabHost host, sys::Child ssh) : host_(std::move(host)), ssh_(std::move(ssh)) {}
  void write_some();
  static bool read_into(sys::Descriptor& from, std::string& text);

  LabHost host_;
  sys::Child ssh_;
  sys::Descriptor to_;    ///< ssh's standard input; of a terminal, none: from_ is both
  sys::Descriptor from_;  ///< its standard output, or our side of its terminal
  sys::Descriptor errors_from_;
  bool terminal_ = false;
  bool greeted_ = false;
  bool let_go_ = false;
  std::string to_send_, output_, errors_;
  std::chrono::steady_clock::time_point opened_at_ = std::chrono::steady_clock::now();
};

using Channels = std::vector<std::unique_ptr<Channel>>;

using Deadline = std::optional<std::chrono::steady_clock::time_point>;
/// Waits until something is there on a channel, on one of `others`, or `until`, and lets the channels do
/// their part. What was found of `others` is in them. A place among the channels may be empty.
void wait_on(const Channels& channels, std::vector<pollfd>& others, Deadline until);
/// The same of one, whose output may be unwanted for now.
void wait_on(Channel& channel, std::vector<pollfd>& others, Deadline until, bool wants_output);

}  // namespace berth::lab
