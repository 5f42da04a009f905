#include "berth/cli/job_request.h"

#include <fmt/format.h>

namespace berth::cli {

void add_job_request(Syntax& syntax, JobRequest& request, std::vector<std::string>& given) {
  LeaseOptions& options = request.lease;
  const std::size_t before = syntax.options.size();
  add_request_options(syntax, options.request);
  syntax.options.push_back(
      time_option("time", "it takes at most so long (2h); then it is ended", options.request.request));
  syntax.options.push_back(
      {kLeaseGroup, 0, "note", "TEXT", "shown to others beside the lease", {}, store_text(options.note)});
  syntax.options.push_back(yield_option(options.request.request));
  add_far_options(syntax, request.far, "on the first host that has the GPUs, through ssh");
  for (std::size_t i = before; i < syntax.options.size(); ++i) {
    Option& option = syntax.options[i];
    option.set = [set = std::move(option.set), name = option.name, flag = option.value.empty(),
                  optional = option.value.starts_with('['), &given](std::string_view value) -> Result<void> {
      BERTH_DO(set(value));
      given.push_back(flag || (optional && value.empty()) ? fmt::format("--{}", name)
                                                          : fmt::format("--{}={}", name, value));
      return {};
    };
  }
}

Result<void> settle(JobRequest& request) {
  BERTH_DO(settle(request.lease));
  return settle(request.far);
}

Result<JobRequest> read_job_request(const std::vector<std::string>& given) {
  JobRequest request;
  Syntax syntax;
  std::vector<std::string> again;
  add_job_request(syntax, request, again);
  std::vector<std::string> copies = given;
  std::vector<char*> words;
  for (std::string& word : copies) words.push_back(word.data());
  BERTH_DO(parse(syntax, "berth submit", words));
  BERTH_DO(settle(request));
  return request;
}

}  // namespace berth::cli
