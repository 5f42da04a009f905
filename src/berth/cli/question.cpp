#include "berth/cli/question.h"

#include <fmt/format.h>

#include <cstdlib>

#include "berth/core/printable.h"

namespace berth::cli {
namespace {

std::string as_line(const std::string& sentence) {
  return fmt::format("berth: {}\n", printable(sentence));
}

}  // namespace

void tell(const std::string& sentence) {
  mention(as_line(sentence));
}

std::string as_lines(const std::vector<std::string>& sentences) {
  std::string lines;
  for (const std::string& sentence : sentences) lines += as_line(sentence);
  return lines;
}

Result<leasing::Place> find_place(leasing::InClaim in_claim) {
  auto place = leasing::find_place(tell, in_claim);
  if (place && !place->warnings.empty()) write_error(as_lines(place->warnings));
  return place;
}

Result<leasing::Session> open_session(Environment& environment, const RequestOptions& options) {
  BERTH_LET(auto place, find_place());
  return open_session_at(std::move(place), environment, options);
}

Result<leasing::Session> open_session_at(leasing::Place place, Environment& environment,
                                         const RequestOptions& options) {
  return leasing::Session::open_at(std::move(place), environment.access(options.source), options.mask);
}

}  // namespace berth::cli
