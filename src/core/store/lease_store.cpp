#include "berth/store/lease_store.h"

#include <algorithm>

#include "berth/store/directory_ticket.h"

namespace berth::store {

std::optional<std::string> contradiction(const Take& take, const Ledger& ledger) {
  for (const DeviceLock& lock : take.locks) {
    for (const Ticket* lease : leases_on(ledger, lock.uuid)) {
      if (lock.whole || !lease->shared) return lock.uuid;
    }
  }
  return std::nullopt;
}

namespace {

Ledger ledger_of(const MemoryBooks& books) {
  Ledger ledger;
  for (const auto& [id, ticket] : books.tickets) ledger.tickets.push_back(ticket);
  for (const auto& [id, ticket] : books.ended) ledger.ended.push_back(ticket);
  return ledger;
}

class MemoryTicket : public OwnTicket {
 public:
  MemoryTicket(std::shared_ptr<MemoryBooks> books, TicketId id) : books_(std::move(books)), id_(id) {}
  ~MemoryTicket() override { release(); }

  const Ticket& ticket() const override { return ended_ ? last_ : books_->tickets.at(id_); }

  Result<Decided> decide(const Decide& decide, GateLimit) override {
    const Ledger ledger = ledger_of(*books_);
    const auto decision = decide(ledger, id_);
    if (!decision) {
      release();
      return std::unexpected(decision.error());
    }
    if (const auto* stay = std::get_if<Stay>(&*decision)) {
      Ticket& own = books_->tickets.at(id_);
      own.held_back = stay->held_back.value_or(own.held_back);
      return Stayed{};
    }
    if (std::holds_alternative<Withdraw>(*decision)) {
      release();
      return Withdrawn{};
    }
    return take(std::get<Take>(*decision), ledger);
  }

  Result<void> wait_again(std::vector<std::string> candidates, GateLimit) override {
    for (auto& [uuid, holders] : books_->locks) holders.erase(id_);
    ++books_->lease_changes;
    Ticket& own = books_->tickets.at(id_);
    own.phase = TicketPhase::waiting;
    own.devices.clear();
    own.candidates = std::move(candidates);
    return {};
  }

  Result<Woken> sleep_behind(TicketId rival, std::chrono::milliseconds, const std::function<bool()>&,
                             const Beside& beside) override {
    if (may_have_ended(beside.uuids, beside.leases)) return Woken::rung;
    const auto found = books_->tickets.find(rival);
    const bool waits = found != books_->tickets.end() && found->second.phase == TicketPhase::waiting;
    return waits ? Woken::tick : Woken::changed;
  }

  bool is_far_back() const override { return false; }

  Result<Woken> sleep_until_released(const std::vector<std::string>& uuids,
                                     const std::vector<TicketId>& leases, const std::vector<int>&,
                                     std::chrono::milliseconds) override {
    return may_have_ended(uuids, leases) ? Woken::changed : Woken::tick;
  }

  void release() override {
    if (ended_) return;
    for (auto& [uuid, holders] : books_->locks) holders.erase(id_);
    last_ = books_->tickets.at(id_);
    if (last_.phase == TicketPhase::granted) ++books_->lease_changes;
    books_->tickets.erase(id_);
    ended_ = true;
  }

  std::vector<int> descriptors() const override { return {}; }

 private:
  bool may_have_ended(const std::vector<std::string>& uuids, const std::vector<TicketId>& leases) const {
    return std::ranges::any_of(uuids, [&](const std::string& uuid) { return books_->locks[uuid].empty(); }) ||
           std::ranges::any_of(leases, [&](TicketId lease) { return !books_->tickets.contains(lease); });
  }

  Result<Decided> take(const Take& take, const Ledger& ledger) {
    if (const auto uuid = contradiction(take, ledger)) return Conflict{*uuid};
    for (const DeviceLock& lock : take.locks) {
      const auto foreign = books_->foreign_locks.find(lock.uuid);
      if (foreign != books_->foreign_locks.end() && (foreign->second || lock.whole))
        return Conflict{lock.uuid};
    }
    for (const DeviceLock& lock : take.locks) books_->locks[lock.uuid].insert(id_);
    Ticket& own = books_->tickets.at(id_);
    own.phase = TicketPhase::granted;
    own.held_back = false;
    ++books_->lease_changes;
    own.devices = take.devices;
    return Taken{};
  }

  std::shared_ptr<MemoryBooks> books_;
  TicketId id_;
  bool ended_ = false;
  Ticket last_;
};

}  // namespace

LocksSeen MemoryStore::see_locks() {
  LocksSeen seen{{}, {}, books_->lease_changes};
  for (const auto& [uuid, whole] : books_->foreign_locks)
    seen.held.push_back({device_file_name(uuid), whole, 0});
  return seen;
}

Result<Books> MemoryStore::look(Extent extent, const std::optional<LocksSeen>& locks) {
  Books books{ledger_of(*books_), {}};
  if (extent != Extent::everything)
    std::erase_if(books.ledger.tickets,
                  [](const Ticket& ticket) { return ticket.phase == TicketPhase::waiting; });
  if (locks) books.foreign_locks = locks->held;
  return books;
}

Result<JoinedTicket> MemoryStore::join(const Ticket& draft, const Decide& decide, const Entry& entry) {
  const TicketId id{++books_->last_id};
  Ticket ticket = draft;
  ticket.id = id;
  ticket.phase = TicketPhase::waiting;
  ticket.devices.clear();
  books_->tickets.emplace(id, ticket);
  auto own = std::make_unique<MemoryTicket>(books_, id);
  BERTH_LET(const auto outcome, own->decide(decide, entry.limit));
  if (std::holds_alternative<Withdrawn>(outcome)) return JoinedTicket{nullptr, outcome};
  return JoinedTicket{std::move(own), outcome};
}

Result<void> MemoryStore::extend(TicketId lease,
                                 const std::function<Result<std::int64_t>(const Ticket&)>& time_of) {
  const auto found = books_->tickets.find(lease);
  if (found == books_->tickets.end()) return fail(ErrorCode::failure, "the lease has ended");
  BERTH_LET(const std::int64_t time_s, time_of(found->second));
  found->second.time_s = time_s;
  return {};
}

Result<void> MemoryStore::set_yield(TicketId lease, std::optional<std::int64_t> yield_s) {
  const auto found = books_->tickets.find(lease);
  if (found == books_->tickets.end()) return fail(ErrorCode::failure, "the lease has ended");
  found->second.yield_s = yield_s;
  return {};
}

Result<void> MemoryStore::set_words(TicketId lease, const std::string& command, const std::string& note) {
  const auto found = books_->tickets.find(lease);
  if (found == books_->tickets.end()) return fail(ErrorCode::failure, "the lease has ended");
  found->second.command = command;
  found->second.note = note;
  return {};
}

bool MemoryStore::is_held_back(TicketId waiting) {
  const auto found = books_->tickets.find(waiting);
  return found != books_->tickets.end() && found->second.held_back;
}

Result<void> MemoryStore::note_release(TicketId lease, const ReleaseCall& call, GateLimit) {
  const auto found = books_->tickets.find(lease);
  if (found == books_->tickets.end()) return fail(ErrorCode::failure, "the lease has ended");
  found->second.release = call;
  return {};
}

void MemoryStore::sweep(const std::vector<TicketId>& keep) {
  std::erase_if(books_->ended,
                [&](const auto& entry) { return std::ranges::find(keep, entry.first) == keep.end(); });
}

Result<std::unique_ptr<LeaseStore>> MemoryStore::inside(TicketId lease) {
  std::shared_ptr<MemoryBooks>& inner = books_->inside[lease];
  if (!inner) inner = std::make_shared<MemoryBooks>();
  return std::make_unique<MemoryStore>(inner);
}

}  // namespace berth::store
