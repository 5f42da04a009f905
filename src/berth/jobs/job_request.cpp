#include "berth/jobs/job_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/base/units.h"

namespace berth::jobs {

void add_job_request(command::Syntax& syntax, JobRequest& request, std::vector<std::string>& given) {
  supervise::LeaseOptions& options = request.lease;
  const std::size_t before = syntax.options.size();
  add_request_options(syntax, options.request);
  syntax.options.push_back(supervise::time_option("time", "it takes at most so long (2h); then it is ended",
                                                  options.request.request));
  syntax.options.push_back({supervise::kLeaseGroup,
                            0,
                            "note",
                            "TEXT",
                            "shown to others beside the lease",
                            {},
                            command::store_text(options.note)});
  syntax.options.push_back(supervise::yield_option(options.request.request));
  add_far_options(syntax, request.far, "on the first host that has the GPUs, through ssh");
  for (std::size_t i = before; i < syntax.options.size(); ++i) {
    command::Option& option = syntax.options[i];
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

namespace {

struct UnitOfOld {
  std::string_view option;
  std::string_view unit;
};
constexpr auto kUnitsOfOld = std::to_array<UnitOfOld>(
    {{"--time=", "s"}, {"--yield=", "s"}, {"--memory=", "B"}, {"--free=", "B"}, {"--total=", "B"}});

// An earlier Berth took numbers without a unit, and stored them as they were typed: --time=7200.
std::string with_unit(std::string word) {
  const auto* const found = std::ranges::find_if(
      kUnitsOfOld, [&word](const UnitOfOld& each) { return word.starts_with(each.option); });
  if (found == kUnitsOfOld.end()) return word;
  const auto quantity = quantity_from_text(std::string_view(word).substr(found->option.size()));
  if (quantity && quantity->unit.empty()) word += found->unit;
  return word;
}

}  // namespace

Result<JobRequest> read_job_request(const std::vector<std::string>& given) {
  JobRequest request;
  command::Syntax syntax;
  std::vector<std::string> again;
  add_job_request(syntax, request, again);
  std::vector<std::string> copies;
  for (const std::string& word : given) copies.push_back(with_unit(word));
  std::vector<char*> words;
  for (std::string& word : copies) words.push_back(word.data());
  BERTH_DO(parse(syntax, "berth submit", words));
  BERTH_DO(settle(request));
  return request;
}

}  // namespace berth::jobs
