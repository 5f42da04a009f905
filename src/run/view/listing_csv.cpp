#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/verdict/ledger.h"
#include "berth/view/listing.h"
#include "berth/view/text.h"

namespace berth::view {
namespace {

// By RFC 4180.
std::string csv_value(std::string_view text) {
  const std::string value = printable(text);
  if (value.find_first_of(",\"") == std::string::npos) return value;
  std::string quoted = "\"";
  for (const char c : value) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string mebibytes(const Reading<std::uint64_t>& bytes) {
  return bytes ? std::to_string(*bytes >> 20U) : "";
}

template <class Number>
std::string number_or_none(const Reading<Number>& number) {
  return number ? std::to_string(*number) : "";
}

constexpr std::string_view kCsvColumns =
    "gpu,uuid,name,users,leases,until_s,memory_used_mib,memory_total_mib,utilization_percent,temperature_c,"
    "power_w,state\n";

std::string csv_line(const Listing& listing, const Device& device, const Style& style) {
  std::vector<std::string> users;
  std::vector<std::string> leases;
  std::int64_t until_s = 0;
  bool has_end = true;
  for (const Ticket* lease : leases_holding(device, listing.ledger)) {
    users.push_back(lease->user);
    leases.push_back(to_text(lease->id));
    const auto end_s = said_end_at_s(*lease, listing.facts.booted_at_s);
    has_end = has_end && end_s;
    until_s = std::max(until_s, end_s.value_or(0));
  }
  const std::array<std::string, 12> values{
      label(device),
      device.uuid,
      csv_value(device.name),
      csv_value(fmt::format("{}", fmt::join(users, " "))),
      csv_value(fmt::format("{}", fmt::join(leases, " "))),
      leases.empty() || !has_end ? "" : std::to_string(until_s),
      mebibytes(device.memory.used_bytes),
      mebibytes(device.memory.total_bytes),
      number_or_none(device.utilization_percent),
      number_or_none(device.temperature_c),
      device.power_mw ? fmt::format("{:.1f}", *device.power_mw / 1000.0) : "",
      csv_value(device_row(listing, device, style).back().text)};
  return fmt::format("{}\n", fmt::join(values, ","));
}

}  // namespace

std::string listing_csv(const Listing& listing, const Style& style) {
  std::string text(kCsvColumns);
  for (const Device& device : listing.facts.snapshot.devices) text += csv_line(listing, device, style);
  return text;
}

}  // namespace berth::view
