#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device.h"
#include "berth/queue/standing.h"
#include "berth/request/request.h"
#include "berth/verdict/verdict.h"
#include "berth/view/text.h"

namespace berth::view {

/// Why the request waits: "1 of 4 free; GPU 3 leased alice 2 h, GPU 5 draining", without the
/// devices that it could never have, or "behind bob (train.py)".
std::string reason(const Standing& standing, const Snapshot& snapshot, const Style& style);

/// The same standing, with its reason in words.
Standing told(Standing standing, const Snapshot& snapshot, const Style& style);

/// The request in words: "2 whole GPUs, name~A100".
std::string request_in_words(const Request& request);

/// What there is to say about a request on this machine at this moment.
struct Why {
  const Request& request;
  const Snapshot& snapshot;
  const std::vector<Verdict>& verdicts;
  std::size_t possible = 0;            ///< how many devices could ever serve it
  std::vector<std::string> looser;     ///< requests that would succeed now, in words
  const Standing* standing = nullptr;  ///< its present or future place behind another request
  /// About when it would start if it were made now; nullopt: at once, or that is not known.
  std::optional<std::int64_t> starts_at_s{};
  std::optional<std::string> never{};  ///< as why_never()
  bool in_lease = false;               ///< the request is made inside a lease, whose devices these are
  /// Inside a lease: the limit of the user for which the request is too much outside of it too, in
  /// words; "": none is.
  std::string limit_outside{};
};

/// The answer of `why`: a line for each device, then the result.
std::string explanation(const Why& why, const Style& style);

/// What to print on the error stream of `pick` and `run` if too few devices are free: what happened
/// and what to do next.
std::string refusal(const Why& why, const Style& style);

}  // namespace berth::view
