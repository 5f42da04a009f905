#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/lab_queue/model/lab_copy.h"

// The messages to and from etcd, over the JSON gateway of its third version. There, keys and values
// are base64, 64-bit numbers are texts, and a zero is left out. Pure.
namespace berth::lab_queue {

struct StoredValue {
  std::string key, value;
  std::uint64_t created = 0;  ///< the revision at which the key was made; gives the order, and is a condition
                              ///< of changes
  std::uint64_t changed = 0;  ///< the revision at which it was last changed

  bool operator==(const StoredValue&) const = default;
};

std::string one_key_json(std::string_view key);
/// Asks for a page of the keys, in their order: from `from` on, at most `most`, as they were at
/// `revision` (0: as they are).
std::string page_json(std::string_view prefix, std::string_view from, std::size_t most,
                      std::uint64_t revision);
/// The keys there that were changed after this revision, without their values. etcd's count is that
/// of all.
std::string changed_since_json(std::string_view prefix, std::uint64_t revision);
/// For a watch: what changes there from this revision on.
std::string changes_with_prefix_json(std::string_view prefix, std::uint64_t revision);
std::string etcd_change_json(const LabChange& change);
/// Asks etcd to forget what was before the revision.
std::string etcd_compaction_json(std::uint64_t revision);
/// Why etcd has not forgotten it. "": it has, or had before.
std::string forgetting_fault(std::string_view json);
std::string lease_grant_json(std::int64_t ttl_s);
std::string lease_renewal_json(std::string_view lease);

// Error of each function: `failure` if it is no such answer; an error that etcd reports comes with
// etcd's words.
struct StoredRange {
  std::vector<StoredValue> values;
  std::uint64_t revision = 0;  ///< of the whole store when it was read
  std::uint64_t count = 0;     ///< of all keys of the range, also those beyond the limit
};
Result<StoredRange> read_stored(std::string_view json);
/// One line of a watch.
struct EtcdNews {
  struct Change {
    StoredValue value;  ///< if it was removed, only key and revision
    bool removed = false;
  };
  std::vector<Change> changes{};
  bool has_ended = false;  ///< etcd has ended the watch, because it no longer has changes from so far back
};
Result<EtcdNews> read_etcd_news(std::string_view json);
struct ChangeAnswer {
  bool made = false;
  std::uint64_t revision = 0;  ///< of the store, including the change
};
Result<ChangeAnswer> read_change_answer(std::string_view json);
struct EtcdLease {
  std::string id;
  std::int64_t ttl_s = 0;      ///< 0: the lease has ended
  std::uint64_t revision = 0;  ///< of the whole store when the lease was renewed
};
Result<EtcdLease> read_granted_lease(std::string_view json);
Result<EtcdLease> read_renewed_lease(std::string_view json);
Result<std::string> read_etcd_version(std::string_view json);
std::string etcd_login_json(std::string_view user, std::string_view password);
/// The token. Error: `failure`, in etcd's words.
Result<std::string> read_etcd_login(std::string_view json);
/// Whether etcd says that the token of the question is not valid, or no longer valid.
bool refuses_token(std::string_view json);
/// Whether etcd says that who asks has to be a user of it.
bool asks_for_user(std::string_view json);
/// Whether etcd says at a log-in that it has no passwords: it lets everybody in.
bool asks_nobody_for_password(std::string_view json);

/// The value as it is in the store.
std::string stored_text(const LabChange::Put& put);
/// The value of a ticket's key. Its id and order are the key's.
std::string lab_ticket_json(const LabTicket& ticket);
/// nullopt: it is no ticket.
std::optional<LabTicket> read_lab_ticket(std::string_view id, const StoredValue& stored);
/// The value of the key of a start.
std::string lab_start_json(const LabStart& start);
/// Without a host: it is none.
LabStart read_lab_start(std::string_view text);

}  // namespace berth::lab_queue
