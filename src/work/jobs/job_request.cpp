#include "berth/jobs/job_request.h"

#include <algorithm>
#include <utility>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/base/units.h"

namespace berth::jobs {

void add_job_request(command::Syntax& syntax, JobRequest& request) {
  supervise::LeaseOptions& options = request.lease;
  add_request_options(syntax, options.request);
  for (const RequestPart part : {RequestPart::lease, RequestPart::job})
    add_fields(syntax, part, supervise::kLeaseGroup, options.request.request);
  syntax.add(supervise::note_option(supervise::kLeaseGroup, options.note));
  add_far_options(syntax, request.far, "on the first host that has the GPUs, through ssh");
}

Result<void> settle(JobRequest& request) {
  BERTH_DO(settle(request.lease));
  return settle(request.far);
}

namespace {

constexpr std::string_view kUuids = "uuid";
constexpr std::string_view kIgnored = "ignore";

}  // namespace

StoredRequest stored_of(const JobRequest& request) {
  const command::RequestOptions& options = request.lease.request;
  const command::AnywhereOptions& hosts = request.far.hosts;
  StoredRequest stored;
  stored.request = options.request;
  stored.says_count = options.count.has_value();
  stored.note = request.lease.note;
  if (options.uuids) stored.ids = kUuids;
  if (options.mask == MaskUse::ignore) stored.mask = kIgnored;
  if (options.source != source::SourceKind::kAutomatic) stored.source = source::to_text(options.source);
  stored.anywhere = hosts.anywhere;
  stored.hosts = hosts.hosts;
  stored.only = hosts.only;
  stored.without = hosts.without;
  stored.folder = request.far.folder;
  if (request.far.passed_variables != command::FarOptions().passed_variables)
    stored.env = request.far.passed_variables;
  stored.near = request.far.near;
  return stored;
}

Result<JobRequest> request_of(const StoredRequest& stored) {
  JobRequest request;
  command::RequestOptions& options = request.lease.request;
  options.request = stored.request;
  if (stored.says_count) options.count = stored.request.count;
  request.lease.note = stored.note;
  options.uuids = stored.ids == kUuids;
  if (stored.mask == kIgnored) options.mask = MaskUse::ignore;
  if (!stored.source.empty()) {
    const auto source = source::source_kind_from_text(stored.source);
    if (!source)
      return fail(ErrorCode::failure, "the job names the source {}, which this Berth does not know",
                  printable(stored.source));
    options.source = *source;
  }
  request.far = {.hosts = {stored.anywhere, stored.hosts, stored.only, stored.without},
                 .folder = stored.folder,
                 .near = stored.near};
  if (!stored.env.empty()) request.far.passed_variables = stored.env;
  BERTH_DO(settle(request));
  return request;
}

Result<StoredRequest> stored_from_options(const std::vector<std::string>& options) {
  JobRequest request;
  command::Syntax syntax;
  add_job_request(syntax, request);
  BERTH_DO(parse(syntax, "berth submit", options));
  BERTH_DO(settle(request));
  return stored_of(request);
}

}  // namespace berth::jobs
