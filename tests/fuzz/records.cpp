// Our own records: whoever wrote one may be another user, or a newer Berth.
#include "berth/api/lease_messages.h"
#include "berth/device/device_readings.h"
#include "berth/job/job.h"
#include "berth/job/job_codec.h"
#include "berth/queue/ticket_codec.h"
#include "berth/source/probe/probe.h"
#include "berth/usage/receipt.h"
#include "targets.h"

namespace berth::fuzz {

void read_ticket(std::string_view input) {
  const auto ticket = decode_ticket(input);
  if (!ticket) return;
  const std::string written = encode_ticket(*ticket);
  const auto again = decode_ticket(written);
  require(again.has_value(), "a ticket that is written can be read");
  // Words may be cut for want of room, never what is held.
  require(again->id == ticket->id && again->phase == ticket->phase &&
              (again->devices == ticket->devices || ticket->phase == TicketPhase::waiting) &&
              again->promise_bytes == (ticket->shared ? ticket->promise_bytes : 0),
          "a ticket that is written holds what it held");
  for (const auto& longer : {with_time(written, 60), with_release(written, {1000, 4711, "please"})}) {
    if (longer) require(decode_ticket(*longer).has_value(), "a line more leaves it a ticket");
  }
}

void read_snapshot(std::string_view input) {
  if (const auto snapshot = decode_snapshot(input)) {
    const auto again = decode_snapshot(encode_snapshot(*snapshot));
    require(again && *again == *snapshot, "a snapshot is read as it was written");
  }
  // What else comes over a pipe from a process of ours.
  (void)source::decode_request(input);
  (void)source::decode_error(input);
  (void)source::cut_at_last_progress(input);
  (void)api::decode_ask(input);
  (void)api::decode_message(input);
  require(api::first_record(input) <= input.size(), "a record is a part of its text");
}

void read_job(std::string_view input) {
  (void)decode_events(input);
  for (const Receipt& receipt : decode_receipts(input))
    require(decode_receipts(encode_receipt(receipt)).size() == 1, "a receipt that is written can be read");
  (void)task_id_from_text(input);
  (void)indices_from_text(input);
  const auto job = decode_job(input);
  if (!job) return;
  const auto again = decode_job(encode_job(*job));
  require(again && *again == *job, "a job is read as it was written");
  if (!check_array(*job)) return;
  const auto indices = indices_of(*job);
  require(indices.size() <= kMostTasks, "a job has so many tasks at most");
  if (!indices.empty()) (void)params_of(*job, indices.back());
}

}  // namespace berth::fuzz
