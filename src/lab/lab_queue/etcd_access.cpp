#include "berth/lab_queue/etcd_access.h"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/lab_queue/etcd_client.h"
#include "berth/lab_queue/model/lab_copy.h"
#include "berth/net/listener.h"
#include "berth/request/request.h"

namespace berth::lab_queue {
namespace {

Result<http::Peer> member_of_store(const std::string& url, const http::StoreSettings& settings) {
  BERTH_LET(auto peer, http::peer_from_url(url));
  peer.is_store = true;
  peer.authorities = settings.ca_file;
  peer.certificate = settings.cert_file;
  peer.key = settings.key_file;
  if (peer.certificate.empty() != peer.key.empty())
    return fail(ErrorCode::usage, "--store-cert and --store-key belong together: give both or neither");
  if (!check(peer))
    return fail(ErrorCode::usage,
                "--store {}: anybody on the network could read and change the queue of the lab; let "
                "etcd speak https, and name its authority with --store-ca",
                url_of(peer));
  return peer;
}

}  // namespace

Result<std::optional<EtcdAccess>> etcd_access(const http::StoreSettings& settings,
                                              const std::string& hostname) {
  if (settings.urls.empty()) {
    if (settings == http::StoreSettings{}) return std::nullopt;
    return fail(ErrorCode::usage, "which store? --store-socket and the like need --store URL");
  }
  EtcdAccess access;
  for (const std::string& url : settings.urls) {
    BERTH_LET(auto member, member_of_store(url, settings));
    access.members.push_back(std::move(member));
  }
  if (settings.user.empty() != settings.password_file.empty())
    return fail(ErrorCode::usage,
                "--store-user and --store-password-file belong together: give both or neither");
  access.user = settings.user;
  access.password_file = settings.password_file;
  access.socket = settings.socket.empty() ? std::string(http::kDefaultStoreSocket) : settings.socket;
  if (access.socket.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::usage, "--store-socket {}: the path is too long for a socket", access.socket);
  access.name = settings.name.empty() ? hostname : settings.name;
  if (const auto fit = check_host_name(access.name); !fit)
    return fail(ErrorCode::usage, "--store-name: {}", fit.error().message);
  return access;
}

// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.

namespace {

using view::Level;
using Version = std::array<unsigned, 3>;

constexpr Version kOldestEtcd{3, 4, 0};
/// From 3.5.0 up to this one etcd can lose what it has said to have, when it is killed.
constexpr Version kFirstOf35{3, 5, 0};
constexpr Version kLosesUntil{3, 5, 3};

Version version_of(std::string_view text) {
  Version version{};
  for (unsigned& part : version) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc{}) break;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  return version;
}

/// The answer of etcd to each change while its file is as large as it may be.
constexpr std::string_view kFull = "database space exceeded";

/// Whether it would be made is asked before etcd looks at the condition, which cannot hold.
EtcdQuestion impossible_write(std::string_view key) {
  LabChange change;
  change.conditions = {{std::string(key), ~std::uint64_t{0} >> 2U}};
  change.puts.push_back({std::string(key), ""});
  return question_to_change(change);
}

/// "": it is an answer of etcd to a question for a key, or to a change, without an error.
std::string fault_in(const Result<std::string>& answer) {
  if (!answer) return answer.error().message;
  const auto read = read_change_answer(*answer);
  return read ? "" : read.error().message;
}

class Look {
 public:
  explicit Look(const EtcdAccess& access) : access_(access) {}

  std::vector<view::Finding> take() {
    std::exception_ptr fault;
    asio::co_spawn(loop_, go(), [&fault](const std::exception_ptr& thrown) { fault = thrown; });
    loop_.run();
    if (fault) tell(Level::fail, "store", "it could not be asked; is there memory left?", "");
    return std::move(findings_);
  }

 private:
  net::Coroutine<void> go() {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < access_.members.size(); ++i) {
      const auto version = co_await version_of_member(i);
      if (version && !first) first = i;
      tell_of_member(i, version);
    }
    // While another one answers, a member that is down stops nothing.
    if (!first) co_return;
    for (view::Finding& each : findings_)
      if (each.check != "version" && each.level == Level::fail)
        each = {Level::warn, each.check, each.found, "start it; until then the agents ask the other members"};
    const EtcdAccess where = only_member(*first);
    co_await ask_as_nobody(where);
    if (!wants_user_ || !access_.user.empty()) co_await try_rights(where);
  }

  void tell_of_member(std::size_t which, const Result<std::string>& version) {
    const std::string url = http::url_of(access_.members[which]);
    if (!version) {
      tell(Level::fail, url, version.error().message,
           "start etcd; until then no request in the queue of the lab starts");
      return;
    }
    tell(Level::pass, url, fmt::format("etcd {}", *version), "");
    if (const std::string fault = version_fault(*version); !fault.empty())
      tell(Level::fail, "version", fault, "update etcd to 3.5.6 or later");
  }

  /// A member that has lost the others still says its version, but reads no key.
  net::Coroutine<Result<std::string>> version_of_member(std::size_t which) {
    const EtcdAccess access = only_member(which);
    net::Client plain(loop_, sharing_, access.members.front());
    const std::string path = "/version";
    const std::string nothing;
    BERTH_CO_LET(const auto told, co_await plain.get(path, nothing, kEtcdPatience));
    BERTH_CO_LET(const auto version, read_etcd_version(told.body));
    BERTH_CO_DO(co_await ask(access, reading_));
    co_return version;
  }

  net::Coroutine<Result<std::string>> ask(const EtcdAccess& access, const EtcdQuestion& question) {
    EtcdClient client(loop_, sharing_, access);
    co_return co_await client.ask(question);
  }

  net::Coroutine<void> ask_as_nobody(const EtcdAccess& where) {
    EtcdAccess nobody = where;
    nobody.user.clear();
    nobody.members.front().certificate.clear();
    nobody.members.front().key.clear();
    const auto answer = co_await ask(nobody, reading_);
    wants_user_ = answer && asks_for_user(*answer);
    if (fault_in(answer).empty())
      tell(Level::warn, "users", "etcd asks nobody who they are: whoever reaches it can change the queue",
           "make a user for the agents; docs/machines.md has the lines");
    else if (wants_user_ && access_.user.empty())
      tell(Level::fail, "users", "etcd asks for a user and a password, and none are named",
           "name them: --store-user NAME --store-password-file FILE, here and for each agent");
  }

  net::Coroutine<void> try_rights(const EtcdAccess& where) {
    const std::string who = access_.user.empty() ? "the agents" : fmt::format("the user {}", access_.user);
    const auto read = co_await ask(where, reading_);
    std::string fault = fault_in(read);
    const std::string what = fault.empty() ? "write" : "read";
    if (fault.empty()) {
      const auto written = co_await ask(where, writing_);
      fault = fault_in(written);
    }
    if (fault.empty())
      tell(Level::pass, "rights", fmt::format("{} may read and write the queue", who), "");
    else if (fault.contains(kFull))
      tell_of_room(read);
    else
      tell(Level::fail, "rights", fmt::format("{} may not {} the queue: {}", who, what, fault),
           fault.contains("permission denied")
               ? "give it the right to read and write below /berth/1/; docs/machines.md has the lines"
               : "ask etcd what ails it: `etcdctl endpoint status`, `etcdctl alarm list`");
  }

  /// `read`: an answer to a question, which says how far the store has come.
  void tell_of_room(const Result<std::string>& read) {
    const auto range = read ? read_stored(*read) : std::unexpected(read.error());
    tell(Level::fail, "room",
         "etcd is full and takes no change (NOSPACE): no request in the queue of the lab starts",
         fmt::format("as an admin of etcd: `etcdctl compact {}`, then `etcdctl defrag`, then `etcdctl alarm "
                     "disarm`",
                     range ? range->revision : 0));
  }

  EtcdAccess only_member(std::size_t which) const {
    EtcdAccess access = access_;
    access.members = {access_.members[which]};
    return access;
  }

  void tell(Level level, std::string check, std::string found, std::string remedy) {
    findings_.push_back({level, std::move(check), std::move(found), std::move(remedy)});
  }

  const EtcdAccess& access_;
  const EtcdQuestion reading_ = question_for_key(kMarkOfStore);
  const EtcdQuestion writing_ = impossible_write(kMarkOfStore);
  asio::io_context loop_{1};
  std::shared_ptr<net::ClientSharing> sharing_ = net::client_sharing(loop_);
  std::vector<view::Finding> findings_{};
  bool wants_user_ = false;
};

}  // namespace

std::string version_fault(std::string_view text) {
  const Version version = version_of(text);
  if (version < kOldestEtcd) return fmt::format("etcd {} is older than 3.4", text);
  if (version >= kFirstOf35 && version < kLosesUntil)
    return fmt::format("etcd {} can lose data when it is killed", text);
  return "";
}

std::vector<view::Finding> look_at_store(const EtcdAccess& access) {
  return Look(access).take();
}

}  // namespace berth::lab_queue
