#include "berth/supervise/lease_options.h"

#include "berth/base/delay.h"
#include "berth/command/environment.h"
#include "berth/sys/environment.h"

namespace berth::supervise {

Result<std::optional<std::int64_t>> wait_that_is_said(const LeaseOptions& options,
                                                      std::optional<std::int64_t> otherwise) {
  if (options.in_background) return std::nullopt;
  if (options.no_wait) return 0;
  if (options.wait_s) return options.wait_s;
  const std::string_view set = sys::variable("BERTH_WAIT");
  if (set.empty()) return otherwise;
  if (set == "forever") return std::nullopt;
  const auto seconds = delay_from_text(set);
  if (!seconds) return std::unexpected(context(seconds.error(), "BERTH_WAIT (a time, 0 or forever)"));
  return *seconds;
}

command::Option time_option(std::string_view help, Request& request) {
  command::Option option = lease_option("time", request);
  option.help = help;
  return option;
}

command::Option lease_option(std::string_view name, Request& request) {
  return command::field_option(*find_request_field(name), kLeaseGroup, request);
}

command::Option note_option(std::string_view group, std::string& note) {
  return {group, "note", "TEXT", "shown to others beside the lease", command::text_into(note)};
}

void add_lease_options(command::Syntax& syntax, LeaseOptions& options) {
  add_request_options(syntax, options.request);
  syntax.flag(kLeaseGroup, "no-wait", "do not wait: exit with status 75 and the reasons", options.no_wait);
  syntax.option(kLeaseGroup, "wait", "TIME", "wait at most this long (30m), then exit with status 124",
                command::delay_into(options.wait_s));
  add_fields(syntax, RequestPart::lease, kLeaseGroup, options.request.request);
  syntax.add(note_option(kLeaseGroup, options.note));
}

Result<void> settle(LeaseOptions& options) {
  if (options.no_wait && options.wait_s)
    return fail(ErrorCode::usage, "--wait and --no-wait exclude each other");
  return settle(options.request);
}

}  // namespace berth::supervise
