// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/lab_queue/etcd_heartbeat.h"

#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/version.h"
#include "berth/lab_queue/etcd_messages.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

constexpr auto kPresence = 30s;
constexpr auto kRenewal = 10s;

}  // namespace

net::Task<Result<EtcdHeartbeat::Instant>> EtcdHeartbeat::renew() {
  const Instant now = std::chrono::steady_clock::now();
  if (!lease_.empty()) {
    std::string path = "/v3/lease/keepalive";
    std::string body = lease_renewal_json(lease_);
    BERTH_CO_LET(const auto answer, co_await store_->ask(std::move(path), std::move(body)));
    const auto renewed = read_renewed_lease(answer);
    if (renewed) store_->is_at(renewed->revision);
    if (renewed) compaction_.is_at(renewed->revision, now);
    if (!renewed || renewed->ttl_s <= 0) {
      lease_.clear();
      is_shown_ = false;
    }
  }
  // Kept also if the rest fails: a store that is too slow would otherwise get one more lease with
  // each try.
  if (lease_.empty()) {
    std::string path = "/v3/lease/grant";
    std::string body = lease_grant_json(std::chrono::seconds(kPresence).count());
    BERTH_CO_LET(const auto answer, co_await store_->ask(std::move(path), std::move(body)));
    BERTH_CO_LET(const auto granted, read_granted_lease(answer));
    lease_ = granted.id;
  }
  if (is_shown_) {
    BERTH_CO_DO(co_await let_forget(now));
  } else {
    LabChange presence;
    presence.puts.push_back({key_of(kLabAlive, name_), std::string(version()), lease_});
    BERTH_CO_DO(co_await store_->change(std::move(presence)));
    is_shown_ = true;
  }
  co_return now + kRenewal;
}

/// The past revisions that etcd keeps would fill its space.
net::Task<Result<void>> EtcdHeartbeat::let_forget(Instant now) {
  const auto revision = compaction_.due(now);
  if (!revision) co_return Result<void>();
  std::string path = "/v3/kv/compaction";
  std::string body = etcd_compaction_json(*revision);
  BERTH_CO_LET(const auto answer, co_await store_->ask(std::move(path), std::move(body)));
  // Each agent says so, and the first one is obeyed.
  const std::string fault = forgetting_fault(answer);
  if (!fault.empty() && fault != forgetting_fault_)
    log_(
        fmt::format("the store does not forget old changes, and its file grows: {}; start etcd with "
                    "--auto-compaction-mode=periodic --auto-compaction-retention=1h",
                    printable(fault)));
  forgetting_fault_ = fault;
  co_return Result<void>();
}

}  // namespace berth::lab_queue
