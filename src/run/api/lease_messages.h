#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/device/device.h"
#include "berth/queue/standing.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"

// The messages between a host and the program that queues on its behalf, `berth __lease`. The host
// sends one LeaseAsk. The program answers with any number of Standing. Then it sends a snapshot and
// one LeaseGranted, whose first byte carries the descriptors; or one LeaseRefused, with a snapshot
// before it if the refusal speaks of devices. All messages are records (src/core/base/record.h),
// which end with the line "end", so nothing else frames them.
namespace berth::api {

struct LeaseAsk {
  std::string version;  ///< of the host's Berth: another one is refused
  Request request;
  std::string note;
  std::optional<std::chrono::milliseconds> wait;  ///< nullopt: for ever
  bool ignore_mask = false;
  std::vector<std::string> variables;  ///< as LeaseTerms
  std::vector<std::string> beside;     ///< likewise
};

struct LeaseGranted {
  TicketId id;
  std::string directory;  ///< path of the lease directory that it is in
  std::string path;       ///< value for BERTH_LEASE
  std::vector<std::string> uuids;
  std::vector<std::string> notes;
  std::uint64_t promise_bytes = 0;  ///< of a share: memory that is promised on each device
  bool mask_by_uuid = false;        ///< the site says so
};

struct LeaseRefused {
  Error error;
  std::vector<Verdict> verdicts;  ///< `reason` is in words
};

/// A message to the host. Of a Standing it has only what users are told: position, time, reason,
/// and the id, pid, user, command and note of each ticket before it.
using LeaseMessage = std::variant<Standing, Snapshot, LeaseGranted, LeaseRefused>;

std::string encode(const LeaseAsk& ask);
/// Error: `failure`. REQUIRES: nothing; the text may be anything.
Result<LeaseAsk> decode_ask(std::string_view text);

std::string encode(const LeaseMessage& message);
Result<LeaseMessage> decode_message(std::string_view text);

/// The length of the first whole record in the text; 0: there is none yet.
std::size_t first_record(std::string_view text);

}  // namespace berth::api
