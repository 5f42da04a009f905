#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device.h"

namespace berth::nvidia_smi {

/// One column of --query-gpu and where its value goes.
struct Field {
  ReadingSet readings;  ///< that need it; empty: always asked
  std::string_view name;
  std::string_view older;  ///< name in older drivers, "" if it has none
  void (*put)(Device& device, std::string_view value);
};

/// A query: the columns still thought to be known to this nvidia-smi. One that is not known fails
/// the whole query.
class Query {
 public:
  explicit Query(ReadingSet readings);

  /// For --query-gpu=.
  std::string columns() const;
  /// Takes away, or calls by its older name, what the message names as not valid. False: it names
  /// none of ours.
  bool drop_refused(std::string_view message);
  /// The devices, one a line. Lines with another number of columns are ignored.
  /// `driver_version` is filled when it was asked for.
  std::vector<Device> devices(std::string_view csv, std::string& driver_version) const;

 private:
  struct Column {
    const Field* field;
    std::string_view name;
  };
  std::vector<Column> columns_;
};

/// Splits a line at ", " into at most `count` parts; the last keeps what is left. The output quotes
/// nothing, so free text has to come last.
std::vector<std::string_view> split_line(std::string_view line, std::size_t count);

/// One process of the report. On a split GPU it tells the instance.
struct ReportedProcess {
  Process process;
  Reading<unsigned> gpu_instance;
  Reading<unsigned> compute_instance;
};

struct ReportedInstance {
  MigPlacement placement;  ///< without the parent's UUID
  Memory memory;
};

/// One GPU in the output of `nvidia-smi -q -x`: what its other outputs do not have. Only there are
/// graphics processes listed, and processes with the MIG instance that they are on.
struct ReportedGpu {
  std::string uuid;
  Reading<bool> row_remap_pending;
  Reading<bool> row_remap_failed;
  Reading<std::vector<ReportedProcess>> processes;
  std::vector<ReportedInstance> instances;
};

std::vector<ReportedGpu> parse_report(std::string_view xml);

/// One MIG instance in the output of `nvidia-smi -L`, which alone has the UUIDs of instances.
struct ListedInstance {
  std::string parent_uuid;
  unsigned slot = 0;
  std::string profile;  ///< "1g.10gb"
  std::string uuid;
};

std::vector<ListedInstance> parse_list(std::string_view text);

}  // namespace berth::nvidia_smi
