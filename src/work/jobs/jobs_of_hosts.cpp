#include "berth/jobs/jobs_of_hosts.h"

#include <algorithm>
#include <iterator>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/hosts/far_call.h"
#include "berth/jobs/listed_jobs.h"

namespace berth::jobs {
namespace {

std::string reported_hosts(const std::vector<LabHost>& hosts) {
  std::string names;
  for (const LabHost& host : hosts) names += (names.empty() ? "" : ", ") + host.name;
  return names;
}

}  // namespace

view::JobsOfHosts look_at_jobs(const std::vector<LabHost>& hosts, const std::vector<std::string>& states) {
  view::JobsOfHosts jobs;
  std::vector<std::string> question{"jobs", "--json"};
  std::ranges::move(state_arguments(states), std::back_inserter(question));
  const auto documents = hosts::documents_of(hosts, question);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto told = documents[i] ? view::jobs_from_json(*documents[i], hosts[i].name)
                             : Result<std::vector<view::ListedTask>>(std::unexpected(documents[i].error()));
    if (told)
      std::ranges::move(*told, std::back_inserter(jobs.tasks));
    else
      jobs.missing.push_back({hosts[i].name, told.error().message});
  }
  return jobs;
}

Result<LabHost> host_of_job(const std::vector<LabHost>& hosts, TaskId id) {
  if (hosts.size() == 1) return hosts.front();
  const view::JobsOfHosts jobs = look_at_jobs(hosts);
  std::vector<LabHost> having;
  for (const LabHost& host : hosts) {
    if (std::ranges::any_of(jobs.tasks, [&](const view::ListedTask& task) {
          return task.host == host.name && task.id.job == id.job;
        }))
      having.push_back(host);
  }
  if (having.size() == 1 && jobs.missing.empty()) return having.front();
  std::string silent;
  for (const view::MissingHost& each : jobs.missing)
    silent += fmt::format("\n{}: {}", printable(each.host), printable(each.reason));
  if (having.empty())
    return fail(ErrorCode::failure, "no job {} of yours on these hosts (`berth jobs --anywhere`){}", id.job,
                silent);
  if (having.size() == 1)
    return fail(ErrorCode::usage,
                "{} has a job {}, and not all hosts answer; name the host of "
                "the job that you mean: --host {}{}",
                having.front().name, id.job, having.front().name, silent);
  return fail(ErrorCode::usage, "there is a job {} on {}; name the host of the job that you mean: --host {}",
              id.job, reported_hosts(having), having.front().name);
}

}  // namespace berth::jobs
