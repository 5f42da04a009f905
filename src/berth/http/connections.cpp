#include "berth/http/connections.h"

namespace berth::http {

void Guests::allow(std::size_t most, std::size_t most_of_address) {
  most_ = most;
  most_of_address_ = most_of_address;
}

Guests::Admission Guests::admit(const std::string& address) {
  Admission admission;
  const auto known = addresses_.find(address);
  const bool has_its_share = known != addresses_.end() && known->second.count >= most_of_address_;
  if (has_its_share || is_full()) {
    const Order& waiting = has_its_share ? known->second.waiting : waiting_;
    if (waiting.empty()) return admission;
    admission.shown_out = waiting.begin()->second;
    leaves(*admission.shown_out);
  }
  const auto place = addresses_.try_emplace(address).first;
  ++place->second.count;
  admission.id = ++last_;
  guests_.emplace(admission.id, Guest{place});
  return admission;
}

void Guests::waits(Id id) {
  const auto guest = guests_.find(id);
  if (guest == guests_.end() || guest->second.since != 0) return;
  guest->second.since = ++last_;
  waiting_.emplace(last_, id);
  guest->second.address->second.waiting.emplace(last_, id);
}

void Guests::is_served(Id id) {
  const auto guest = guests_.find(id);
  if (guest == guests_.end() || guest->second.since == 0) return;
  waiting_.erase(guest->second.since);
  guest->second.address->second.waiting.erase(guest->second.since);
  guest->second.since = 0;
}

void Guests::leaves(Id id) {
  is_served(id);
  const auto guest = guests_.find(id);
  if (guest == guests_.end()) return;
  const auto address = guest->second.address;
  guests_.erase(guest);
  if (--address->second.count == 0) addresses_.erase(address);
}

}  // namespace berth::http
