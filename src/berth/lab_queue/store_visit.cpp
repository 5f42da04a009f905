// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/lab_queue/store_visit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "berth/http/settings.h"
#include "berth/lab_queue/lab_mirror.h"
#include "berth/lab_queue/store_client.h"
#include "berth/net/keep_going.h"
#include "berth/sys/file.h"
#include "berth/sys/random_word.h"
#include "berth/sys/system_error.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;
template <class T>
using Told = asio::awaitable<T, net::Executor>;
using view::Finding;
using view::Level;

constexpr std::size_t kMostTicketsRead = 1000;
constexpr std::size_t kMostMachinesRead = 2000;
constexpr std::string_view kRoleOfAgents = "berth";
/// Of etcd itself: whoever it is may do everything.
constexpr std::string_view kRoot = "root";
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

StorePlace as_root(StorePlace place, std::string password_file) {
  place.user = kRoot;
  place.password_file = std::move(password_file);
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

/// The password, and whether it was written just now.
struct Password {
  std::string text;
  bool is_new = false;
};

Result<Password> password_in(const std::string& path) {
  const std::string doing = fmt::format("writing a new password into {}", path);
  const sys::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (!file && errno == EEXIST) {
    BERTH_LET(auto known, http::read_secret(path, "password"));
    return Password{std::move(known), false};
  }
  if (!file) return sys::fail_errno(doing);
  BERTH_LET(auto word, sys::random_word());
  if (const auto written = sys::write_start(file.get(), word + "\n"); !written)
    return std::unexpected(context(written.error(), doing));
  return Password{std::move(word), true};
}

class UserMaking {
 public:
  UserMaking(Visit& visit, const StorePlace& place, const std::string& root_file)
      : visit_(visit), place_(place), root_file_(root_file) {}

  Told<void> go() { result_ = co_await make_all(); }

  Result<std::vector<Finding>> take() {
    if (!result_) return std::unexpected(result_.error());
    return std::move(findings_);
  }

 private:
  Told<Result<bool>> is_guarded() {
    const StorePlace place = as_nobody(place_);
    const auto client = visit_.client(place);
    const std::string path = "/v3/kv/range";
    const std::string body = one_key_json(kMarkOfStore);
    const auto answer = co_await client->ask(path, body);
    if (!answer) co_return std::unexpected(answer.error());
    co_return asks_for_user(*answer);
  }

  Told<Result<void>> make_all() {
    const auto guarded = co_await is_guarded();
    if (!guarded) co_return std::unexpected(guarded.error());
    if (*guarded && root_file_.empty())
      co_return fail(ErrorCode::usage,
                     "etcd asks for a password already: name the file with that of its root with "
                     "--root-password-file");
    who_ = *guarded ? as_root(place_, root_file_) : as_nobody(place_);
    client_ = visit_.client(who_);
    const auto role = co_await make_role();
    if (!role) co_return std::unexpected(role.error());
    const auto user = co_await make_user(place_.user, place_.password_file, kRoleOfAgents, *guarded);
    if (!user) co_return std::unexpected(user.error());
    if (*guarded) co_return Result<void>();
    if (root_file_.empty()) {
      tell(Level::warn, "passwords", "etcd asks nobody for one yet",
           "to switch them on, name a file for the password of its root with --root-password-file; init "
           "writes one if the file is not there");
      co_return Result<void>();
    }
    co_return co_await switch_on();
  }

  Told<Result<void>> make_role() {
    const std::string add = "/v3/auth/role/add";
    const std::string named = store_role_json(kRoleOfAgents);
    const auto made = co_await deed(add, named);
    if (!made) co_return std::unexpected(made.error());
    const std::string grant = "/v3/auth/role/grant";
    const std::string right = store_right_json(kRoleOfAgents, kAllOfLab);
    const auto granted = co_await deed(grant, right);
    if (!granted) co_return std::unexpected(granted.error());
    tell(Level::pass, "role",
         fmt::format("{} may read and write the keys below {}, and no others", kRoleOfAgents, kAllOfLab), "");
    co_return Result<void>();
  }

  /// `is_guarded`: etcd would take the password at a log-in.
  Told<Result<void>> make_user(std::string name, std::string file, std::string_view role, bool is_guarded) {
    const auto password = password_in(file);
    if (!password) co_return std::unexpected(password.error());
    const std::string add = "/v3/auth/user/add";
    const std::string wanted = store_login_json(name, password->text);
    const auto made = co_await deed(add, wanted);
    if (!made) co_return std::unexpected(made.error());
    if (!*made && password->is_new) {
      // Others have the password that holds.
      ::unlink(file.c_str());
      co_return fail(ErrorCode::failure,
                     fmt::format("etcd has a user {} already: copy its password from another machine into {}",
                                 printable(name), printable(file)));
    }
    if (!*made && !is_guarded) {
      const std::string change = "/v3/auth/user/changepw";
      const auto changed = co_await deed(change, wanted);
      if (!changed) co_return std::unexpected(changed.error());
    }
    const std::string grant = "/v3/auth/user/grant";
    const std::string granted_role = store_grant_json(name, role);
    const auto granted = co_await deed(grant, granted_role);
    if (!granted) co_return std::unexpected(granted.error());
    tell(Level::pass, "user",
         fmt::format("{}; its password is in {}{}", name, file, password->is_new ? ", written just now" : ""),
         "");
    co_return Result<void>();
  }

  Told<Result<void>> switch_on() {
    const auto root = co_await make_user(std::string(kRoot), root_file_, kRoot, false);
    if (!root) co_return std::unexpected(root.error());
    const std::string enable = "/v3/auth/enable";
    const std::string nothing = "{}";
    const auto enabled = co_await deed(enable, nothing);
    if (!enabled) co_return std::unexpected(enabled.error());
    tell(Level::pass, "passwords",
         fmt::format("etcd asks everybody for one from now on. Give each agent --store-user {} and "
                     "--store-password-file",
                     place_.user),
         "");
    co_return Result<void>();
  }

  Told<Result<bool>> deed(const std::string& path, const std::string& body) {
    const auto answer = co_await client_->ask(path, body);
    if (!answer) co_return std::unexpected(answer.error());
    co_return read_store_deed(*answer);
  }

  void tell(Level level, std::string check, std::string found, std::string remedy) {
    findings_.push_back({level, std::move(check), std::move(found), std::move(remedy)});
  }

  Visit& visit_;
  const StorePlace& place_;
  std::string root_file_;
  StorePlace who_{};
  std::shared_ptr<StoreClient> client_{};
  std::vector<Finding> findings_{};
  Result<void> result_{};
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

Result<std::vector<Finding>> make_store_users(const StorePlace& place,
                                              const std::string& root_password_file) {
  Visit visit;
  UserMaking making(visit, place, root_password_file);
  BERTH_DO(visit.run(making.go()));
  return making.take();
}

}  // namespace berth::lab_queue
