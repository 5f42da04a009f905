#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>

#include "berth/jobs/job_spool.h"
#include "berth/jobs/named_job.h"
#include "berth/mcp/mcp_protocol.h"
#include "berth/request/request.h"

namespace berth::mcp {

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

/// The tools of one tenant: all that it can see and do. It sees its own jobs, and no other jobs of
/// its user.
class TenantTools {
 public:
  static std::span<const Tool> all();
  static Result<TenantTools> move_in(const TenantRules& rules);

  std::variant<ToolResult, ParkedCall> call(const ToolCall& call);
  /// The answer to a parked call. nullopt: it is not due yet.
  std::optional<ToolResult> due(const ParkedCall& call) const;
  void give_up(const ParkedCall& call) const;
  /// Makes sure that the jobs that it leaves end. They end also without this call.
  void move_out();

 private:
  using Arguments = decltype(ToolCall::arguments);

  TenantTools(const TenantRules& rules, jobs::JobSpool spool, jobs::Tenant tenant)
      : rules_(rules), spool_(std::move(spool)), tenant_(std::move(tenant)) {}
  Result<std::uint64_t> submit(const Arguments& arguments);
  Result<jobs::NumberedJob> own_job(const Arguments& arguments) const;
  Result<ToolResult> look_at_jobs() const;
  Result<ToolResult> log(const Arguments& arguments) const;
  Result<ToolResult> cancel(const Arguments& arguments) const;
  Result<ToolResult> edit(const Arguments& arguments) const;
  /// Error: `usage`, for more than the session may have.
  Result<void> check_rules(const Request& request) const;
  Result<ToolResult> release(const Arguments& arguments) const;
  Result<std::variant<ToolResult, ParkedCall>> answer(const ToolCall& call);
  Result<ToolResult> told(std::uint64_t number) const;

  TenantRules rules_;
  jobs::JobSpool spool_;
  jobs::Tenant tenant_;
  std::set<std::uint64_t> jobs_;
};

}  // namespace berth::mcp
