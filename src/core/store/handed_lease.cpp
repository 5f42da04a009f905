#include "berth/store/handed_lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>

#include "berth/store/device_locks.h"
#include "berth/store/directory_scan.h"
#include "berth/store/ticket_file.h"
#include "berth/sys/file.h"
#include "berth/sys/lock.h"

namespace berth::store {

HandedLease::HandedLease(DirectoryChoice directory, TicketId id, std::vector<sys::Descriptor> descriptors)
    : directory_(std::move(directory)), id_(id), descriptors_(std::move(descriptors)) {}

// The order is that of DirectoryTicket::release, and for its reasons.
void HandedLease::release() {
  if (descriptors_.empty()) return;
  const sys::Descriptor& file = descriptors_.back();
  for (const sys::Descriptor& device : std::span(descriptors_).first(descriptors_.size() - 1))
    unlock_device(device.get());
  const auto directory = LeaseDirectory::open(directory_);
  struct stat status{};
  // A directory that was made anew has other tickets in it.
  if (directory && *directory && ::fstat(file.get(), &status) == 0 &&
      sys::identity_of((*directory)->leases.get(), to_text(id_)) == sys::identity_of(status))
    remove_ticket(**directory, TicketPhase::granted, id_, ::geteuid());
  sys::unlock_bytes(file.get(), kAliveByte, sys::kToTheEnd);
  descriptors_.clear();
}

void HandedLease::drop() {
  if (descriptors_.empty()) return;
  descriptors_.clear();
  const auto directory = LeaseDirectory::open(directory_);
  if (!directory || !*directory) return;
  const auto left = open_ticket((*directory)->leases.get(), id_, O_RDONLY);
  if (left && *left && !sys::is_byte_locked(left->get(), kAliveByte).value_or(true))
    remove_ticket(**directory, TicketPhase::granted, id_, ::geteuid());
}

}  // namespace berth::store
