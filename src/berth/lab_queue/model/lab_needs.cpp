#include "berth/lab_queue/model/lab_needs.h"

#include <cstdint>
#include <optional>

#include "berth/lab_queue/model/lab_changes.h"
#include "berth/lab_queue/model/lab_limits.h"

namespace berth::lab_agent {
namespace {

Need yes(QueueEntry& entry, const std::string& host) {
  Yes told{host};
  entry.stage = Runs{told.host};
  return told;
}

class NeedRules {
 public:
  NeedRules(Client& one, const Settings& settings, const Given& given)
      : one_(one),
        entry_(*one.entry),
        settings_(settings),
        given_(given),
        found_(given.store.queue().find(entry_.kept.id)),
        start_(given.store.start_of(entry_.kept.id)) {}

  Need need() && {
    give_number(entry_.kept);
    if (found_ && found_->uid != one_.uid) return TurnedAway{"another user has an entry of this name"};
    if (!found_ && start_ != nullptr && entry_.has_lost(*start_, one_.pid))
      return Writes{take_back(entry_, given_.store), Settles::TakesBack{start_->host}};
    if (const auto* asks = std::get_if<Asks>(&entry_.stage)) return start_on(asks->host);
    // The command runs. That stays true if the store was wiped or set back.
    if (const auto* runs = std::get_if<Runs>(&entry_.stage)) {
      if (start_ == nullptr)
        return Writes{put_start_again(entry_, entry_.start_on(runs->host, one_.pid), order(),
                                      has_lab_limit(settings_.limits))};
      return runs->asks_again ? answer(runs->host) : Nothing{};
    }
    if (!found_) return start_ == nullptr ? put() : Nothing{};
    const LabTicket wanted = entry_.ticket();
    const bool is_as_wanted = found_->hosts == wanted.hosts && found_->joined == wanted.joined &&
                              found_->most == wanted.most && found_->origin == wanted.origin;
    return is_as_wanted ? Nothing{} : put();
  }

 private:
  /// A request gets its number once. It keeps the number of its ticket or its start, also if
  /// the store was wiped.
  void give_number(LabTicket& wanted) const {
    if (found_)
      wanted.number = found_->number;
    else if (start_ != nullptr)
      wanted.number = start_->number;
    else if (!wanted.number && has_numbers(settings_.order))
      wanted.number = next_number(settings_.order, wanted.uid, given_.store.numbers());
  }

  /// The one start.
  Need start_on(const std::string& host) {
    // It has no entry: it gets one first, or it was started already.
    if (!found_) return start_ == nullptr ? put() : answer(host);
    if (entry_.is_closing(host)) return not_now(Nothing{});  // it is about to let this host go
    const auto why =
        entry_.kept.most ? why_over(entry_, settings_, given_, given_.store.gpus_by_user(), 0) : std::nullopt;
    if (why) return not_now(Over{*why});
    return Writes{put_start(entry_, entry_.start_on(host, one_.pid), order(), given_.store),
                  Settles::Starts{host}};
  }

  Need not_now(Need need) {
    entry_.stage = Waits{};
    return need;
  }

  /// A start that was answered to nobody is answered again, to the same process for the same host.
  Need answer(const std::string& host) {
    const bool is_own = start_->pid == one_.pid;
    if (start_->host == host && is_own) return yes(entry_, host);
    // Another's start that is there stays. Its own ends with the connection, as always.
    return TurnedAway{"this request was started already", is_own};
  }

  Need put() const { return Writes{put_ticket(entry_, order())}; }
  /// Of its ticket; 0: it has none.
  std::uint64_t order() const { return found_ ? found_->order : 0; }

  Client& one_;
  QueueEntry& entry_;
  const Settings& settings_;
  const Given& given_;
  std::optional<LabTicket> found_;
  const LabStart* start_;
};

}  // namespace

Need need_of(Client& one, const Settings& settings, const Given& given) {
  return NeedRules(one, settings, given).need();
}

Need need_after(QueueEntry& entry, const Settles::Purpose& made) {
  if (const auto* starts = std::get_if<Settles::Starts>(&made)) {
    // If the process has let the host go while the store was asked, the next round takes the start
    // back.
    const auto* asks = std::get_if<Asks>(&entry.stage);
    if (asks != nullptr && asks->host == starts->host) return yes(entry, starts->host);
  } else if (const auto* back = std::get_if<Settles::TakesBack>(&made)) {
    if (NamedHost* host = entry.host(back->host)) host->is_let_go = std::holds_alternative<Left>(host->how);
  }
  return Nothing{};
}

}  // namespace berth::lab_agent
