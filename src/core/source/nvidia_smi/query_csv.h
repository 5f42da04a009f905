#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/device/snapshot.h"

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

}  // namespace berth::nvidia_smi
