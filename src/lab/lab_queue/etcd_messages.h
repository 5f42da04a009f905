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

/// What etcd is asked by POST.
struct EtcdQuestion {
  std::string path;
  std::string body;
};
EtcdQuestion question_for_key(std::string_view key);
/// For a page of the keys, in their order: from `from` on, at most `most`, as they were at
/// `revision` (0: as they are).
EtcdQuestion question_for_page(std::string_view prefix, std::string_view from, std::size_t most,
                               std::uint64_t revision);
/// For the keys there that were changed after this revision, without their values. etcd's count is
/// that of all.
EtcdQuestion question_what_changed(std::string_view prefix, std::uint64_t revision);
/// To watch what changes there from this revision on.
EtcdQuestion question_to_watch(std::string_view prefix, std::uint64_t revision);
EtcdQuestion question_to_change(const LabChange& change);
/// To forget what was before the revision.
EtcdQuestion question_to_forget(std::uint64_t revision);
EtcdQuestion question_for_lease(std::int64_t ttl_s);
EtcdQuestion question_to_renew(std::string_view lease);
EtcdQuestion question_for_token(std::string_view user, std::string_view password);

// Error of each function: `failure` if it is no such answer; an error that etcd reports comes with
// etcd's words.
Result<StoredRange> read_stored(std::string_view json);
/// One line of a watch.
struct EtcdNews {
  std::vector<ToldChange> changes{};
  bool has_ended = false;  ///< by etcd, because it no longer has changes from so far back
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
  std::uint64_t revision = 0;  ///< of the whole store
};
/// Which was granted or renewed.
Result<EtcdLease> read_lease(std::string_view json);
Result<std::string> read_etcd_version(std::string_view json);
/// The token.
Result<std::string> read_etcd_login(std::string_view json);

/// Why etcd has not forgotten it. "": it has, or had before.
std::string forgetting_fault(std::string_view json);
/// Whether etcd says that the token of the question is not valid, or no longer valid.
bool refuses_token(std::string_view json);
/// Whether etcd says that who asks has to be a user of it.
bool asks_for_user(std::string_view json);
/// Whether etcd says at a log-in that it has no passwords: it lets everybody in.
bool asks_nobody_for_password(std::string_view json);

// The texts of tickets and starts in the store of a lab, which agents of other versions read and
// write too (docs/store-protocol.md). Pure.

/// The value as it is in the store.
std::string stored_text(const LabValue& value);
/// The value of this key. A text that is no ticket stays text; a start without a host is none.
LabValue read_stored_text(std::string_view key, std::string text);

}  // namespace berth::lab_queue
