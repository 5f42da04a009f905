#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "berth/source/reader.h"

namespace berth::source {

/// One way to ask for the devices of one vendor.
struct SourceRow {
  std::string_view name;    ///< on the command line, in records and in JSON
  std::string_view vendor;  ///< Vendor::name
  /// Makes its reader. `listener`: if nobody reads from it any more, processes that the reader has
  /// started are ended.
  std::unique_ptr<Reader> (*make)(int listener);
};

/// All sources; the vendors are in the order in which their devices are listed. For each vendor,
/// the first row whose reader is found is asked.
std::span<const SourceRow> source_table();

}  // namespace berth::source
