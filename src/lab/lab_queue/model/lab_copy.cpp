#include "berth/lab_queue/model/lab_copy.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace berth::lab_queue {

std::string key_of(std::string_view folder, std::string_view name) {
  return std::string(folder) + std::string(name);
}

std::optional<std::string> name_in(std::string_view folder, std::string_view key) {
  if (!key.starts_with(folder) || key.size() == folder.size()) return std::nullopt;
  return std::string(key.substr(folder.size()));
}

const LabStart* LabCopy::start_of(std::string_view id) const {
  const auto found = starts_.find(id);
  return found == starts_.end() ? nullptr : &found->second;
}

LabCopy::Revisions LabCopy::revisions(std::string_view key) const {
  const auto known = keys_.find(key);
  return known == keys_.end() ? Revisions{} : known->second;
}

GpusByUser LabCopy::gpus_by_user() const {
  GpusByUser has;
  for (const auto& [id, start] : starts_) has.in_all[start.uid] += start.gpus;
  has.firmly = has.in_all;
  return has;
}

std::vector<Numbered> LabCopy::numbers() const {
  std::vector<Numbered> numbers = queue_.numbers();
  for (const auto& [id, start] : starts_)
    if (start.number) numbers.push_back({start.uid, start.gpus, *start.number, true});
  return numbers;
}

void LabCopy::put(StoredValue stored) {
  const std::string& key = stored.key;
  keys_[key] = {stored.created, stored.changed};
  if (const auto id = name_in(kLabTickets, key)) {
    auto* ticket = std::get_if<LabTicket>(&stored.value);
    if (ticket == nullptr) return queue_.remove(*id);
    ticket->id = *id;
    ticket->order = stored.created;
    queue_.put(std::move(*ticket));
  } else if (const auto started = name_in(kLabStarts, key)) {
    const auto* start = std::get_if<LabStart>(&stored.value);
    starts_.insert_or_assign(*started, start == nullptr ? LabStart{} : *start);
  } else if (const auto* text = std::get_if<std::string>(&stored.value)) {
    if (key == kMarkOfStore) mark_ = *text;
    if (const auto home = name_in(kLabAlive, key)) alive_.insert_or_assign(*home, *text);
  }
}

void LabCopy::remove(const std::string& key) {
  keys_.erase(key);
  if (key == kMarkOfStore) mark_.clear();
  if (const auto id = name_in(kLabTickets, key)) queue_.remove(*id);
  if (const auto home = name_in(kLabAlive, key)) alive_.erase(*home);
  if (const auto started = name_in(kLabStarts, key)) starts_.erase(*started);
}

void LabCopy::read(StoredRange all) {
  forget();
  for (StoredValue& each : all.values) put(std::move(each));
  is_current_at(all.revision);
}

void LabCopy::hear(std::vector<ToldChange> told) {
  if (!is_whole()) return;
  for (auto& [value, removed] : told) {
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
      put(std::move(value));
    }
  }
}

void LabCopy::made_here(const LabChange& change, std::uint64_t revision) {
  if (!is_whole()) return;
  // Nobody has changed anything between what is known and this.
  if (revision == revision_ + 1) revision_ = revision;
  for (const LabChange::Put& each : change.puts) {
    const auto known = keys_.find(each.key);
    removed_here_.erase(each.key);
    put({each.key, each.value, known == keys_.end() ? revision : known->second.created, revision});
  }
  for (const std::string& key : change.removed) {
    if (!keys_.contains(key)) continue;
    remove(key);
    removed_here_.insert_or_assign(key, revision);
  }
}

// Keys that were not changed since then are known. If all changed keys are known too, every key is
// known. If the copy then has more keys than the store, one of its keys is too many.
bool LabCopy::agrees(const StoredRange& since) const {
  const auto is_known = [this](const StoredValue& each) {
    const auto known = keys_.find(each.key);
    return known != keys_.end() && known->second.changed == each.changed;
  };
  return since.count == keys_.size() && std::ranges::all_of(since.values, is_known);
}

}  // namespace berth::lab_queue

namespace berth::lab_queue::lab_agent {
namespace {

/// For the key, and what etcd writes beside a value.
constexpr std::size_t kOfAnyPut = 256;

std::size_t length_of(const std::vector<std::string>& names) {
  constexpr std::size_t kBetween = 3;  // as JSON has them
  std::size_t length = 0;
  for (const std::string& each : names) length += each.size() + kBetween;
  return length;
}

}  // namespace

std::size_t weight_of(const lab_queue::LabChange& change) {
  std::size_t weight = 0;
  for (const lab_queue::LabChange::Put& put : change.puts) {
    weight += kOfAnyPut;
    if (const auto* ticket = std::get_if<LabTicket>(&put.value))
      weight += length_of(ticket->hosts) + length_of(ticket->joined);
  }
  return weight;
}

bool WriteAllowance::take(std::uint32_t uid, std::size_t weight, SteadyTime now) {
  using Seconds = std::chrono::duration<double>;
  Used& used = used_[uid];
  const double since = Seconds(now - used.at).count();
  const auto back = static_cast<std::int64_t>(std::min(since, 1e6) * static_cast<double>(kPerSecond));
  if (back > 0) used = {std::max<std::int64_t>(0, used.bytes - back), now};
  if (used.bytes >= kAtOnce) return false;
  used.bytes += static_cast<std::int64_t>(weight);
  return true;
}

}  // namespace berth::lab_queue::lab_agent
