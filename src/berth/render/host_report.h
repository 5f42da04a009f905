#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "berth/core/error.h"
#include "berth/core/host.h"
#include "berth/render/json.h"

namespace berth::render {

/// One host of a `berth-hosts` document, as another machine tells of it.
struct ToldHost {
  std::string name;
  std::optional<std::string> url;
  std::string error;  ///< "": it answers
  std::optional<std::int64_t> seen_s;
  std::shared_ptr<const HostReport> report;
};
struct ToldHosts {
  bool is_hub = false;
  std::vector<ToldHost> hosts;
};

/// How much there may be in a document.
struct DocumentBounds {
  std::size_t objects = std::numeric_limits<std::size_t>::max();  ///< and lists
  std::size_t values = std::numeric_limits<std::size_t>::max();
};
/// Enough for one machine with thousands of processes.
inline constexpr DocumentBounds kBoundsOfAgent{16'384, 131'072};

/// Reads the document back into values. Whoever wrote it is not trusted: what is no value of ours, is longer
/// or nested deeper than any of ours, or is of another version is an Error: `failure`, with the place. Keys
/// that are not known are left out. Nor may anything that others are told apart by come twice on a host.
/// More than `bounds` is not even parsed: an object takes a hundred times the memory of its two letters.
Result<ToldHosts> read_hosts(std::string_view document, DocumentBounds bounds = {});

/// The same of the two documents of one machine, `berth list --json` and `berth queue --json`.
Result<HostReport> read_report(std::string_view listing, std::string_view queue);

/// Another document of this kind, checked no further than that it is one, with what is no UTF-8 replaced.
Result<std::string> rewritten(std::string_view document, std::string_view kind, Layout layout);

}  // namespace berth::render
