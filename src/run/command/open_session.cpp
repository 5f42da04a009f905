#include "berth/command/open_session.h"

#include "berth/command/messages.h"

namespace berth::command {

Result<leasing::Domain> find_domain(leasing::InClaim in_claim) {
  auto domain = leasing::find_domain(print_message, in_claim);
  if (domain && !domain->warnings.empty()) write_error(as_lines(domain->warnings));
  return domain;
}

Result<leasing::Session> open_session(Environment& environment, const RequestOptions& options) {
  BERTH_LET(auto domain, find_domain());
  return open_session_at(std::move(domain), environment, options);
}

Result<leasing::Session> open_session_at(leasing::Domain domain, Environment& environment,
                                         const RequestOptions& options) {
  return leasing::Session::open_at(std::move(domain), environment.access(options.source), options.mask);
}

}  // namespace berth::command
