#include "berth/lab_queue/lab_mirror.h"

#include <algorithm>
#include <optional>

namespace berth::lab_queue {
namespace {

/// Without the folder; nullopt: the key is not in it.
std::optional<std::string> name_in(std::string_view folder, std::string_view key) {
  if (!key.starts_with(folder) || key.size() == folder.size()) return std::nullopt;
  return std::string(key.substr(folder.size()));
}

}  // namespace

void LabMirror::put(const StoredValue& value) {
  keys_[value.key] = {value.created, value.changed};
  if (value.key == kMarkOfStore) {
    mark_ = value.value;
  } else if (const auto id = name_in(kLabTickets, value.key)) {
    if (auto ticket = read_lab_ticket(*id, value)) {
      queue_.put(*std::move(ticket));
    } else {
      queue_.remove(*id);
    }
  } else if (const auto home = name_in(kLabAlive, value.key)) {
    alive_.insert_or_assign(*home, value.value);
  } else if (const auto started = name_in(kLabStarts, value.key)) {
    starts_.insert_or_assign(*started, read_lab_start(value.value));
  }
}

void LabMirror::remove(const std::string& key) {
  keys_.erase(key);
  if (key == kMarkOfStore) mark_.clear();
  if (const auto id = name_in(kLabTickets, key)) queue_.remove(*id);
  if (const auto home = name_in(kLabAlive, key)) alive_.erase(*home);
  if (const auto started = name_in(kLabStarts, key)) starts_.erase(*started);
}

void LabMirror::read(const StoredRange& all) {
  forget();
  for (const StoredValue& each : all.values) put(each);
  is_current_at(all.revision);
}

void LabMirror::hear(const EtcdNews& news) {
  if (!is_whole()) return;
  for (const auto& [value, removed] : news.changes) {
    // A watch that began before all keys were read also reports older changes.
    if (value.changed <= agreed_) continue;
    revision_ = std::max(revision_, value.changed);
    if (const auto gone = removed_here_.find(value.key); gone != removed_here_.end()) {
      if (value.changed < gone->second) continue;
      removed_here_.erase(gone);
    }
    const auto known = keys_.find(value.key);
    if (known != keys_.end() && value.changed <= known->second.changed) continue;
    if (removed) {
      remove(value.key);
    } else {
      put(value);
    }
  }
}

void LabMirror::made_here(const LabChange& change, std::uint64_t revision) {
  if (!is_whole()) return;
  for (const LabChange::Put& each : change.puts) {
    const auto known = keys_.find(each.key);
    removed_here_.erase(each.key);
    put({each.key, stored_text(each), known == keys_.end() ? revision : known->second.created, revision});
  }
  for (const std::string& key : change.removed) {
    if (!keys_.contains(key)) continue;
    remove(key);
    removed_here_.insert_or_assign(key, revision);
  }
}

// Keys that were not changed since then are known. If all changed keys are known too, every key is
// known. If the mirror then has more keys than the store, one of its keys is too many.
bool LabMirror::agrees(const StoredRange& since) const {
  const auto is_known = [this](const StoredValue& each) {
    const auto known = keys_.find(each.key);
    return known != keys_.end() && known->second.changed == each.changed;
  };
  return since.count == keys_.size() && std::ranges::all_of(since.values, is_known);
}

}  // namespace berth::lab_queue
