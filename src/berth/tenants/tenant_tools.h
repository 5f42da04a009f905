#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>

#include "berth/jobs/job_spool.h"
#include "berth/jobs/named_job.h"
#include "berth/tenants/mcp.h"

namespace berth::cli {

/// The limits of a tenant.
struct TenantRules {
  unsigned gpus = 1;           ///< at once, for all its jobs together
  std::int64_t time_s = 3600;  ///< the time limit of a job
  std::int64_t yield_s = 30;   ///< between SIGTERM and SIGKILL of a job that ends for a waiter
  std::int64_t grace_s = 60;   ///< how long its running jobs go on after it has ended
};

/// A call that is answered when its job is over, or when the call's own time is over.
struct ParkedCall {
  std::string id;  ///< of the call
  std::uint64_t job = 0;
  std::chrono::steady_clock::time_point until;
  bool owns_job = false;  ///< if the call is given up, nobody else knows the job
};

/// The tools of one tenant: all that it can see and do. It sees its own jobs, and no other jobs of its user.
class TenantTools {
 public:
  static std::span<const render::Tool> all();
  static Result<TenantTools> move_in(const TenantRules& rules);

  std::variant<render::ToolResult, ParkedCall> call(const render::ToolCall& call);
  /// The answer to a parked call. nullopt: it is not due yet.
  std::optional<render::ToolResult> due(const ParkedCall& call) const;
  void give_up(const ParkedCall& call) const;
  /// Makes sure that the jobs that it leaves end. They end also without this call.
  void move_out();

 private:
  using Arguments = decltype(render::ToolCall::arguments);

  TenantTools(const TenantRules& rules, store::JobSpool spool, store::Tenant tenant)
      : rules_(rules), spool_(std::move(spool)), tenant_(std::move(tenant)) {}
  Result<std::uint64_t> submit(const Arguments& arguments);
  Result<NumberedJob> own_job(const Arguments& arguments) const;
  Result<render::ToolResult> look_at_jobs() const;
  Result<render::ToolResult> log(const Arguments& arguments) const;
  Result<render::ToolResult> cancel(const Arguments& arguments) const;
  Result<render::ToolResult> release(const Arguments& arguments) const;
  Result<std::variant<render::ToolResult, ParkedCall>> answer(const render::ToolCall& call);
  Result<render::ToolResult> told(std::uint64_t number) const;

  TenantRules rules_;
  store::JobSpool spool_;
  store::Tenant tenant_;
  std::set<std::uint64_t> jobs_;
};

}  // namespace berth::cli
