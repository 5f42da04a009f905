#include "berth/machines/bare_host.h"

#include <algorithm>
#include <array>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/base/text_match.h"

namespace berth {
namespace {

constexpr std::size_t kBareColumns = 5;
constexpr std::size_t kLongestName = 96;
constexpr std::uint64_t kMostMebibytes = std::uint64_t{1} << 30U;
// A driver holds so much of a GPU that nobody uses, and tells such a load of one at rest.
constexpr std::uint64_t kAtRestBytes = std::uint64_t{512} << 20U;
constexpr unsigned kAtRestPercent = 3;

/// The columns of a line; the last keeps what is left, because the output quotes nothing.
std::optional<std::array<std::string_view, kBareColumns>> columns_of(std::string_view line) {
  std::array<std::string_view, kBareColumns> columns;
  for (std::size_t i = 0; i + 1 < kBareColumns; ++i) {
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    columns[i] = trimmed(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  columns.back() = trimmed(line);
  return columns;
}

Reading<std::uint64_t> bare_bytes(std::string_view text) {
  const auto mebibytes = number_from_text<std::uint64_t>(text);
  return mebibytes && *mebibytes <= kMostMebibytes ? Reading<std::uint64_t>(*mebibytes << 20U) : std::nullopt;
}

std::optional<BareDevice> bare_device_from(std::string_view line) {
  const auto columns = columns_of(line);
  const auto index = columns ? number_from_text<unsigned>((*columns)[0]) : std::nullopt;
  if (!index || *index >= kMostBareDevices || columns->back().size() > kLongestName) return std::nullopt;
  BareDevice device{.index = *index, .name = {}};
  device.memory_total_bytes = bare_bytes((*columns)[1]);
  device.memory_used_bytes = bare_bytes((*columns)[2]);
  const auto load = number_from_text<unsigned>((*columns)[3]);
  if (load && *load <= 100) device.utilization_percent = *load;
  if (!columns->back().starts_with('[')) device.name = printable(columns->back());
  return device;
}

}  // namespace

Result<std::vector<BareDevice>> bare_devices_from_csv(std::string_view csv) {
  const auto refused = [](std::size_t line) {
    return fail(ErrorCode::failure, "line {} of its nvidia-smi is no line about a GPU", line);
  };
  if (csv.size() > kLongestBareAnswer) return fail(ErrorCode::failure, "its nvidia-smi says too much");
  std::vector<BareDevice> devices;
  while (!csv.empty()) {
    const std::size_t newline = std::min(csv.find('\n'), csv.size());
    auto device = bare_device_from(csv.substr(0, newline));
    if (!device || (!devices.empty() && device->index <= devices.back().index))
      return refused(devices.size() + 1);
    devices.push_back(*std::move(device));
    csv.remove_prefix(std::min(newline + 1, csv.size()));
  }
  if (devices.empty()) return fail(ErrorCode::failure, "its nvidia-smi lists no GPU");
  return devices;
}

Reading<bool> is_in_use(const BareDevice& device) {
  if (!device.memory_used_bytes && !device.utilization_percent) return std::nullopt;
  return device.memory_used_bytes.value_or(0) > kAtRestBytes ||
         device.utilization_percent.value_or(0) >= kAtRestPercent;
}

}  // namespace berth
