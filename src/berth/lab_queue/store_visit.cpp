// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/lab_queue/store_visit.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "berth/lab_queue/lab_mirror.h"
#include "berth/lab_queue/store_client.h"
#include "berth/net/keep_going.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;
template <class T>
using Told = asio::awaitable<T, net::Executor>;

constexpr std::size_t kMostTicketsRead = 1000;
constexpr std::size_t kMostMachinesRead = 2000;
/// No key of Berth, and of nobody else either.
constexpr std::string_view kKeyElsewhere = "/berth-may-not-write-here";

/// What runs until one task is done.
class Visit {
 public:
  std::shared_ptr<StoreClient> client(const StorePlace& place) {
    return std::make_shared<StoreClient>(loop_, sharing_, place);
  }
  std::shared_ptr<net::Client> plain_client(const http::Peer& peer) {
    return std::make_shared<net::Client>(loop_, sharing_, peer);
  }
  /// Calls `then` when that time is over, unless it was cancelled.
  std::shared_ptr<net::Timer> timer(std::chrono::milliseconds after, std::function<void()> then) {
    const auto timer = std::make_shared<net::Timer>(loop_);
    timer->expires_after(after);
    timer->async_wait([then = std::move(then)](const boost::system::error_code& error) {
      if (!error) then();
    });
    return timer;
  }

  /// Error: `failure`, where memory has ended, or the like.
  Result<void> run(Told<void> task) {
    std::exception_ptr fault;
    asio::co_spawn(loop_, std::move(task), [&fault](const std::exception_ptr& thrown) { fault = thrown; });
    loop_.run();
    if (fault)
      return fail(ErrorCode::failure, "asking the store: it could not be done; is there memory left?");
    return {};
  }

 private:
  asio::io_context loop_{1};
  std::shared_ptr<net::ClientSharing> sharing_ = net::client_sharing(loop_);
};

StorePlace with_member(StorePlace place, std::size_t which) {
  place.members = {place.members[which]};
  return place;
}

StorePlace as_nobody(StorePlace place) {
  place.user.clear();
  place.password_file.clear();
  return place;
}

/// "": it is an answer of etcd without an error.
std::string fault_in(const Result<std::string>& answer) {
  if (!answer) return answer.error().message;
  const auto read = read_stored(*answer);
  return read ? "" : read.error().message;
}

/// Whether it would be made is asked before etcd looks at the condition, which cannot hold.
std::string impossible_write(std::string_view key) {
  StoreChange change;
  change.conditions = {{std::string(key), ~std::uint64_t{0} >> 2U}};
  change.puts.push_back({std::string(key), ""});
  return store_change_json(change);
}

class Look {
 public:
  Look(Visit& visit, const StorePlace& place) : visit_(visit), place_(place) { seen_.user = place.user; }

  Told<void> go() {
    std::size_t first = place_.members.size();
    for (std::size_t i = 0; i < place_.members.size(); ++i) {
      co_await ask_member(i);
      if (seen_.asked.back().fault.empty() && first == place_.members.size()) first = i;
    }
    if (first == place_.members.size()) co_return;
    where_ = with_member(place_, first);
    client_ = visit_.client(where_);
    co_await ask_whether_anybody();
    // Whoever shows no user is told nothing else.
    if (seen_.wants_user && seen_.user.empty()) co_return;
    co_await ask_of_whole();
    co_await try_rights();
    co_await read_line();
  }

  StoreSeen take() { return std::move(seen_); }

 private:
  Told<void> ask_member(std::size_t which) {
    const StorePlace place = with_member(place_, which);
    StoreMemberSeen member{.url = url_of(place.members.front())};
    const auto plain = visit_.plain_client(place.members.front());
    const std::string version = "/version";
    const std::string metrics = "/metrics";
    const std::string nothing;
    const auto told = co_await plain->get(version, nothing, kStorePatience);
    const auto read =
        told ? read_store_version(told->body) : Result<std::string>(std::unexpected(told.error()));
    if (read) {
      member.version = *read;
      const auto gauges = co_await plain->get(metrics, nothing, kStorePatience);
      if (gauges) member.gauges = read_store_gauges(gauges->body);
      co_await read_of(place, member);
    } else {
      member.fault = read.error().message;
    }
    seen_.asked.push_back(std::move(member));
  }

  /// The etcd of a member that has lost the others gives no such answer.
  Told<void> read_of(const StorePlace& place, StoreMemberSeen& member) {
    const auto client = visit_.client(place);
    const std::string path = "/v3/kv/range";
    const std::string body = one_key_json(kMarkOfStore);
    const auto first = co_await client->ask(path, body);
    if (!first) member.fault = first.error().message;
    if (!first) co_return;
    const auto began = std::chrono::steady_clock::now();
    const auto again = co_await client->ask(path, body);
    member.took =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
    if (!again) member.fault = again.error().message;
    if (again) member.cluster = store_cluster_of(*again);
  }

  Told<void> ask_whether_anybody() {
    StorePlace nobody = as_nobody(where_);
    nobody.members.front().certificate.clear();
    nobody.members.front().key.clear();
    const auto client = visit_.client(nobody);
    const std::string path = "/v3/kv/range";
    const std::string body = one_key_json(kMarkOfStore);
    const auto answer = co_await client->ask(path, body);
    seen_.lets_anybody_in = fault_in(answer).empty();
    seen_.wants_user = answer && asks_for_user(*answer);
  }

  Told<void> ask_of_whole() {
    const std::string nothing = "{}";
    const std::string list = "/v3/cluster/member/list";
    const auto members = co_await client_->ask(list, nothing);
    if (members) seen_.members = read_store_members(*members).value_or(std::vector<StoreMember>());
    const std::string alarm = "/v3/maintenance/alarm";
    const std::string get = R"({"action":"GET"})";
    const auto alarms = co_await client_->ask(alarm, get);
    if (alarms) seen_.alarms = read_store_alarms(*alarms).value_or(std::vector<std::string>());
  }

  Told<void> try_rights() {
    const std::string change = "/v3/kv/txn";
    const std::string own = impossible_write(kMarkOfStore);
    const auto written = co_await client_->ask(change, own);
    const auto read =
        written ? read_change_answer(*written) : Result<ChangeAnswer>(std::unexpected(written.error()));
    if (!read) seen_.rights.write = read.error().message;
    const std::string elsewhere = impossible_write(kKeyElsewhere);
    const auto beyond = co_await client_->ask(change, elsewhere);
    seen_.rights.writes_elsewhere = beyond && !denies_right(*beyond);
    // What was before the first revision is nothing.
    const std::string compact = "/v3/kv/compaction";
    const std::string from_first = store_compaction_json(1);
    const auto compacted = co_await client_->ask(compact, from_first);
    seen_.rights.compacts = compacted && !denies_right(*compacted);
    co_await try_watch();
  }

  Told<void> try_watch() {
    const auto watched = visit_.plain_client(client_->member());
    bool has_begun = false;
    bool has_ended = false;
    // A proxy may keep back what has no end.
    const auto late = visit_.timer(kStorePatience, [watched] { watched->hang_up(); });
    const std::string path = "/v3/watch";
    const std::string body = changes_with_prefix_json(kAllOfLab, 0);
    std::function<void(std::string_view)> heard = [&](std::string_view text) {
      const auto news = read_store_news(text.substr(0, text.find('\n')));
      has_begun = news && !news->has_ended;
      has_ended = !has_begun;
      watched->hang_up();
    };
    const Error end = co_await watched->follow(path, body, kStorePatience, std::move(heard));
    const bool is_late = late->expiry() <= std::chrono::steady_clock::now();
    late->cancel();
    if (has_ended)
      seen_.rights.watch = "etcd ended it as soon as it had begun";
    else if (!has_begun)
      seen_.rights.watch = is_late
                               ? fmt::format("nothing came within {} s",
                                             std::chrono::floor<std::chrono::seconds>(kStorePatience).count())
                               : end.message;
  }

  Told<StoredRange> read_some(std::string_view folder, std::size_t most) {
    const std::string path = "/v3/kv/range";
    const std::string body = page_json(folder, folder, most, 0);
    const auto answer = co_await client_->ask(path, body);
    if (const std::string fault = fault_in(answer); !fault.empty()) {
      seen_.rights.read = fault;
      co_return StoredRange{};
    }
    co_return *read_stored(*answer);
  }

  Told<void> read_line() {
    const auto alive = co_await read_some(kLabPresence, kMostMachinesRead);
    for (const auto& each : alive.values)
      seen_.alive.emplace_back(each.key.substr(kLabPresence.size()), each.value);
    const auto tickets = co_await read_some(kLabTickets, kMostTicketsRead);
    seen_.waiting = tickets.count;
    for (const auto& each : tickets.values)
      if (auto ticket = read_lab_ticket(each.key.substr(kLabTickets.size()), each))
        seen_.tickets.push_back(*std::move(ticket));
  }

  Visit& visit_;
  const StorePlace& place_;
  StorePlace where_{};
  std::shared_ptr<StoreClient> client_{};
  StoreSeen seen_{};
};

}  // namespace

StoreSeen look_at_store(const StorePlace& place) {
  Visit visit;
  Look look(visit, place);
  const auto done = visit.run(look.go());
  StoreSeen seen = look.take();
  if (!done) seen.rights.read = done.error().message;
  return seen;
}

}  // namespace berth::lab_queue
