#include "berth/command/open_session.h"

#include "berth/command/messages.h"

namespace berth::command {

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

}  // namespace berth::command
