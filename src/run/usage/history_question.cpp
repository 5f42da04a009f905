#include "berth/usage/history_question.h"

#include <algorithm>
#include <initializer_list>

#include "berth/base/fail.h"
#include "berth/base/record.h"
#include "berth/base/text_match.h"
#include "berth/base/units.h"

namespace berth {
namespace {

constexpr std::int64_t kMostPoints = 2000;

Result<void> check_names(const QuestionParameters& parameters,
                         std::initializer_list<std::string_view> allowed) {
  for (const auto& [name, value] : parameters) {
    if (std::ranges::find(allowed, name) != allowed.end()) continue;
    return fail(ErrorCode::usage, "unknown parameter '{}'{}", name, instead_of(name, allowed));
  }
  return {};
}

Result<void> read_since(const QuestionParameters& parameters, std::int64_t& since_s) {
  const auto given = parameters.find("since");
  if (given == parameters.end()) return {};
  // Programs ask this too, and write seconds.
  const auto seconds = seconds_from_text(given->second, Unitless::is_base);
  if (!seconds) return std::unexpected(context(seconds.error(), "since"));
  if (*seconds < 1 || *seconds > kAccountsKept)
    return fail(ErrorCode::usage, "since: must be from 1s to 400d, like 24h or 7d");
  since_s = *seconds;
  return {};
}

Result<void> read_points(const QuestionParameters& parameters, std::int64_t& points) {
  const auto given = parameters.find("points");
  if (given == parameters.end()) return {};
  const auto number = number_from_text<std::int64_t>(given->second);
  if (!number || *number < 2 || *number > kMostPoints)
    return fail(ErrorCode::usage, "points: must be a number from 2 to {}", kMostPoints);
  points = *number;
  return {};
}

}  // namespace

Result<DeviceQuestion> device_question(const QuestionParameters& parameters) {
  if (auto checked = check_names(parameters, {"device", "since", "points"}); !checked)
    return std::unexpected(checked.error());
  DeviceQuestion question;
  const auto device = parameters.find("device");
  if (device == parameters.end() || device->second.empty())
    return fail(ErrorCode::usage, "device: must be the UUID of a device, as in /api/v1/snapshot");
  question.uuid = device->second;
  BERTH_DO(read_since(parameters, question.since_s));
  BERTH_DO(read_points(parameters, question.points));
  return question;
}

Result<UsageQuestion> usage_question(const QuestionParameters& parameters) {
  if (auto checked = check_names(parameters, {"since", "by"}); !checked)
    return std::unexpected(checked.error());
  UsageQuestion question;
  BERTH_DO(read_since(parameters, question.since_s));
  if (const auto by = parameters.find("by"); by != parameters.end()) {
    if (!read_value(by->second, question.by))
      return fail(ErrorCode::usage, "by: must be user, device or job");
  }
  return question;
}

Result<LeasesQuestion> leases_question(const QuestionParameters& parameters) {
  if (auto checked = check_names(parameters, {"since", "points"}); !checked)
    return std::unexpected(checked.error());
  LeasesQuestion question;
  BERTH_DO(read_since(parameters, question.since_s));
  BERTH_DO(read_points(parameters, question.points));
  return question;
}

}  // namespace berth
