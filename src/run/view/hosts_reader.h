#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/machines/host.h"
#include "berth/view/text.h"

namespace berth::view {

/// One host of a `berth-hosts` document, as another machine reports it.
struct ReportedHost {
  std::string name;
  std::optional<std::string> url;
  std::string error;  ///< "": it answers
  std::optional<std::int64_t> seen_s;
  std::shared_ptr<const HostReport> report;
};
struct ReportedHosts {
  bool is_hub = false;
  std::vector<ReportedHost> hosts;
};

/// The bounds of a document.
struct DocumentBounds {
  std::size_t objects = std::numeric_limits<std::size_t>::max();  ///< and lists
  std::size_t values = std::numeric_limits<std::size_t>::max();
};
/// Enough for one machine with thousands of processes.
inline constexpr DocumentBounds kBoundsOfAgent{16'384, 131'072};

/// Reads the document back into values, without trusting its writer. Error: `failure`, with the
/// place, for a value that Berth does not write, for one that is longer or nested deeper than any
/// of Berth's, for another version, and if an identity (a UUID, an id) comes twice on a host.
/// Unknown keys are ignored. A document with more than `bounds` is not even parsed, because an
/// object takes a hundred times the memory of its two letters.
Result<ReportedHosts> read_hosts(std::string_view document, DocumentBounds bounds = {});

/// The same for the two documents of one machine, `berth list --json` and `berth queue --json`.
Result<HostReport> read_report(std::string_view listing, std::string_view queue);

/// Any document of this kind, of which only the kind is checked. Bytes that are no UTF-8 are
/// replaced.
Result<std::string> rewritten(std::string_view document, std::string_view kind, Layout layout);

}  // namespace berth::view
