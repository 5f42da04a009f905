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
  /// Makes its reader. `listener`: when nobody reads from it any more, what the
  /// reader has started is ended.
  std::unique_ptr<Reader> (*make)(int listener);
};

/// All there are, the vendors in the order in which their devices are listed.
/// Of one vendor the first row whose reader is found is asked.
std::span<const SourceRow> source_table();

}  // namespace berth::source
