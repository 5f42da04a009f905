#include "berth/http/connections.h"

namespace berth::http {

void Connections::allow(std::size_t most, std::size_t most_of_address) {
  most_ = most;
  most_of_address_ = most_of_address;
}

Connections::Admission Connections::admit(const std::string& address) {
  Admission admission;
  const auto known = addresses_.find(address);
  const bool has_its_share = known != addresses_.end() && known->second.count >= most_of_address_;
  if (has_its_share || is_full()) {
    const Order& waiting = has_its_share ? known->second.waiting : waiting_;
    if (waiting.empty()) return admission;
    admission.evicted = waiting.begin()->second;
    leaves(*admission.evicted);
  }
  const auto place = addresses_.try_emplace(address).first;
  ++place->second.count;
  admission.id = ++last_;
  connections_.emplace(admission.id, Connection{place});
  return admission;
}

void Connections::waits(Id id) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end() || connection->second.since != 0) return;
  connection->second.since = ++last_;
  waiting_.emplace(last_, id);
  connection->second.address->second.waiting.emplace(last_, id);
}

void Connections::is_served(Id id) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end() || connection->second.since == 0) return;
  waiting_.erase(connection->second.since);
  connection->second.address->second.waiting.erase(connection->second.since);
  connection->second.since = 0;
}

void Connections::leaves(Id id) {
  is_served(id);
  const auto connection = connections_.find(id);
  if (connection == connections_.end()) return;
  const auto address = connection->second.address;
  connections_.erase(connection);
  if (--address->second.count == 0) addresses_.erase(address);
}

}  // namespace berth::http
