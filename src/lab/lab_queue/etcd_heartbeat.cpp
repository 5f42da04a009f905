// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/lab_queue/etcd_heartbeat.h"

#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/version.h"
#include "berth/lab_queue/etcd_messages.h"
#include "berth/lab_queue/model/lab_keys.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

constexpr auto kKeptHistory = 10min;
constexpr auto kPresence = 30s;
constexpr auto kRenewal = 10s;

}  // namespace

void Compaction::is_at(std::uint64_t revision, Instant now) {
  // Less than before: it was wiped, or is another one.
  if (!noted_ || revision < newest_) noted_ = {now, revision};
  newest_ = revision;
}

std::optional<std::uint64_t> Compaction::due(Instant now) {
  if (!noted_ || now < noted_->when + kKeptHistory) return std::nullopt;
  return std::exchange(noted_, Heard{now, newest_})->revision;
}

net::Task<Result<EtcdHeartbeat::Instant>> EtcdHeartbeat::renew(bool anew) {
  const Instant now = std::chrono::steady_clock::now();
  if (anew) is_shown_ = false;
  if (!lease_.empty()) {
    EtcdQuestion question = question_to_renew(lease_);
    BERTH_CO_LET(const auto answer, co_await store_->ask(std::move(question)));
    const auto renewed = read_lease(answer);
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
    EtcdQuestion question = question_for_lease(std::chrono::seconds(kPresence).count());
    BERTH_CO_LET(const auto answer, co_await store_->ask(std::move(question)));
    BERTH_CO_LET(const auto granted, read_lease(answer));
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
  EtcdQuestion question = question_to_forget(*revision);
  BERTH_CO_LET(const auto answer, co_await store_->ask(std::move(question)));
  // Each agent says so, and the first one is obeyed.
  const std::string fault = forgetting_fault(answer);
  if (!fault.empty() && fault != forgetting_fault_)
    log_(
        fmt::format("the store does not forget old changes, and its file grows: {}; start etcd with "
                    "--auto-compaction-mode=periodic --auto-compaction-retention=10m",
                    printable(fault)));
  forgetting_fault_ = fault;
  co_return Result<void>();
}

}  // namespace berth::lab_queue
