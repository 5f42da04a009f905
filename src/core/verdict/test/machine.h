#pragma once

#include <string>
#include <vector>

#include "berth/verdict/verdict.h"

/// Machines, leases and requests that the tests of the policy share.
namespace berth::test {

inline constexpr std::uint64_t kGiB = 1ULL << 30;
inline constexpr std::uint64_t kMiB = 1ULL << 20;

inline std::string uuid_of(unsigned index) {
  const std::string digits = std::to_string(index);
  return "GPU-" + std::string(8 - digits.size(), '0') + digits + "-1111-2222-3333-444444444444";
}

/// An idle A100 with 40 GiB.
inline Device gpu(unsigned index) {
  Device device;
  device.index = index;
  device.uuid = uuid_of(index);
  device.name = "NVIDIA A100-SXM4-40GB";
  device.pci_bus_id = "0000:0" + std::to_string(index % 10) + ":00.0";
  device.mig_enabled = false;
  device.compute_capability = 80;
  device.compute_mode = ComputeMode::shared;
  device.memory = {MemoryKind::dedicated, 40 * kGiB, 0, 40 * kGiB - 512 * kMiB, 512 * kMiB};
  device.utilization_percent = 0;
  device.memory_utilization_percent = 0;
  device.temperature_c = 30;
  device.power_mw = 55'000;
  device.power_limit_mw = 400'000;
  device.processes.emplace();
  return device;
}

inline Process process(std::uint32_t pid, std::uint64_t used_bytes, ProcessKind kind = ProcessKind::compute) {
  Process process;
  process.pid = pid;
  process.kind = kind;
  process.used_bytes = used_bytes;
  process.user = "bob";
  process.command = "/usr/bin/python train.py";
  return process;
}

/// Lists a process on the device and counts its memory as in use.
inline void add_process(Device& device, const Process& process) {
  device.processes->push_back(process);
  *device.memory.used_bytes += process.used_bytes.value_or(0);
}

/// Of a site without backfill, which the tests of backfill turn on.
inline Facts machine(unsigned count) {
  Facts facts;
  facts.policy.queue.backfill = false;
  for (unsigned i = 0; i < count; ++i) facts.snapshot.devices.push_back(gpu(i));
  return facts;
}

/// GPU `index` becomes a split one with this many instances of 10 GiB.
inline void split(Snapshot& snapshot, unsigned index, unsigned instances) {
  auto parent = snapshot.devices.begin();
  while (parent->index != index) ++parent;
  parent->mig_enabled = true;
  std::vector<Device> slices;
  for (unsigned slot = 0; slot < instances; ++slot) {
    Device slice = gpu(index);
    slice.uuid = "MIG-" + std::to_string(index) + std::to_string(slot) + "000000-5555-6666-7777-888888888888";
    slice.name += " MIG 1g.10gb";
    slice.mig = MigPlacement{parent->uuid, slot, slot + 7, 0};
    slice.mig_enabled.reset();
    slice.memory = {MemoryKind::dedicated, 10 * kGiB, 0, 10 * kGiB, std::nullopt};
    slice.utilization_percent.reset();
    slice.memory_utilization_percent.reset();
    slice.power_mw.reset();
    slice.temperature_c.reset();
    slices.push_back(slice);
  }
  snapshot.devices.insert(parent + 1, slices.begin(), slices.end());
}

inline Ticket lease(std::uint64_t id, const std::string& uuid) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.phase = TicketPhase::granted;
  ticket.user = "alice";
  ticket.taker.pid = 4000;
  ticket.devices = {uuid};
  ticket.candidates = {uuid};
  return ticket;
}

/// Waits for so many of these GPUs.
inline Ticket wants(std::uint64_t id, unsigned count, const std::vector<unsigned>& devices) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.count = count;
  for (const unsigned device : devices) ticket.candidates.push_back(uuid_of(device));
  return ticket;
}

/// A ticket that carries it keeps the fair order.
inline OrderNumber fair(std::int64_t value) {
  return {QueueOrder::fair, value};
}

inline Ticket shared_lease(std::uint64_t id, const std::string& uuid, std::uint64_t promise_bytes) {
  Ticket ticket = lease(id, uuid);
  ticket.shared = true;
  ticket.promise_bytes = promise_bytes;
  return ticket;
}

inline Request shared_request(std::uint64_t promise_bytes) {
  Request request;
  request.shared = true;
  request.promise_bytes = promise_bytes;
  return request;
}

inline Expression condition(std::string_view text) {
  return Expression::parse(text).value();
}

}  // namespace berth::test
