#include "berth/jobs/job_request.h"

#include <algorithm>
#include <span>
#include <utility>

#include "berth/base/units.h"

namespace berth::jobs {

void add_job_request(command::Syntax& syntax, JobRequest& request, std::vector<std::string>& given) {
  supervise::LeaseOptions& options = request.lease;
  const std::size_t before = syntax.options.size();
  add_request_options(syntax, options.request);
  syntax.options.push_back(supervise::time_option("time", "it takes at most so long (2h); then it is ended",
                                                  options.request.request));
  syntax.options.push_back(supervise::note_option(supervise::kLeaseGroup, options.note));
  syntax.options.push_back(supervise::lease_option("mps-percent", options.request.request));
  syntax.options.push_back(supervise::lease_option("yield", options.request.request));
  add_far_options(syntax, request.far, "on the first host that has the GPUs, through ssh");
  note_words(std::span(syntax.options).subspan(before), given);
}

Result<void> settle(JobRequest& request) {
  BERTH_DO(settle(request.lease));
  return settle(request.far);
}

namespace {

std::string_view unit_of(RequestValue kind) {
  if (kind == RequestValue::time || kind == RequestValue::grace) return "s";
  return kind == RequestValue::share || kind == RequestValue::size_filter ? "B" : "";
}

// An earlier Berth took numbers without a unit, and stored them as they were typed: --time=7200.
std::string with_unit(std::string word) {
  constexpr std::string_view kDashes = "--";
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view name = std::string_view(word).substr(0, equals);
  const RequestField* const field =
      name.starts_with(kDashes) ? find_request_field(name.substr(kDashes.size())) : nullptr;
  if (field == nullptr || equals == word.size()) return word;
  const auto quantity = quantity_from_text(std::string_view(word).substr(equals + 1));
  if (quantity && quantity->unit.empty()) word += unit_of(field->kind);
  return word;
}

}  // namespace

Result<JobRequest> read_job_request(const std::vector<std::string>& given) {
  JobRequest request;
  command::Syntax syntax;
  std::vector<std::string> again;
  add_job_request(syntax, request, again);
  std::vector<std::string> words;
  for (const std::string& word : given) words.push_back(with_unit(word));
  BERTH_DO(parse(syntax, "berth submit", std::move(words)));
  BERTH_DO(settle(request));
  return request;
}

}  // namespace berth::jobs
