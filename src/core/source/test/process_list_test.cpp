#include "berth/source/nvml/process_list.h"

#include <doctest/doctest.h>

#include "fake_driver.h"

namespace berth::nvml::process_list_test {
namespace {

std::vector<ListedProcess> g_compute;
std::vector<ListedProcess> g_graphics;
/// What the library really writes, and whether its list is three times as long at the next call.
std::size_t g_entry_size = 24;
bool g_triples = false;
bool g_tells_needed = true;

Return list_compute(Handle, unsigned* count, void* buffer) {
  const unsigned room = *count;
  ++FakeDriver::current().calls["compute"];
  const Return outcome = write_list(g_compute, g_entry_size, count, buffer);
  if (outcome == kInsufficientSize && !g_tells_needed) *count = room;
  if (g_triples) g_compute.insert(g_compute.end(), 2 * g_compute.size(), {9000, 0});
  return outcome;
}
Return list_graphics(Handle, unsigned* count, void* buffer) {
  return write_list(g_graphics, g_entry_size, count, buffer);
}
/// Two entries of 32 bytes, the last of which is not written to its end.
Return list_unfinished(Handle, unsigned* count, void* buffer) {
  const Return outcome = write_list({{1184, 5}, {16040, 6}}, 32, count, buffer);
  std::memset(static_cast<unsigned char*>(buffer) + 56, 0xAA, 8);
  return outcome;
}
Return refuse_version(Handle, unsigned*, void*) {
  return kFunctionNotFound;
}
Return refuse_permission(Handle, unsigned*, void*) {
  return kNoPermission;
}
Return never_called() {
  return kUnknown;
}

struct Lists {
  FakeDriver driver{{{.uuid = "GPU-0"}}};
  Library library = driver.library();

  Lists() {
    g_compute.clear();
    g_graphics.clear();
    g_entry_size = 24;
    g_triples = false;
    g_tells_needed = true;
  }

  Reading<std::vector<Process>> read() {
    library = driver.library();
    return read_processes(library, FakeDriver::handle_of(0), outcome);
  }
  Return outcome = kSuccess;
};

TEST_CASE_FIXTURE(Lists, "the entries are read by the size that was written, whatever the symbol promises") {
  driver.set("nvmlDeviceGetComputeRunningProcesses_v3", list_compute);
  driver.set("nvmlDeviceGetGraphicsRunningProcesses_v3", list_graphics);
  for (const std::size_t size : {16, 24, 32}) {
    for (const std::size_t count : {1, 2, 3, 63, 64}) {
      CAPTURE(size);
      CAPTURE(count);
      g_entry_size = size;
      g_compute.clear();
      for (std::size_t i = 0; i < count; ++i) {
        g_compute.push_back({static_cast<std::uint32_t>(1000 + i), (i + 1) << 20U});
      }
      const auto processes = read();
      REQUIRE(processes);
      REQUIRE(processes->size() == count);
      CHECK(processes->back().pid == 999 + count);
      CHECK(processes->back().used_bytes == std::uint64_t{count} << 20U);
    }
  }
}

TEST_CASE_FIXTURE(Lists, "an older function is used where the newer is missing or refuses") {
  g_entry_size = 16;
  g_compute = {{7, 1024}};
  driver.set("nvmlDeviceGetComputeRunningProcesses", list_compute);
  CHECK(read().value().at(0).pid == 7);
  driver.set("nvmlDeviceGetComputeRunningProcesses_v3", refuse_version);
  driver.set("nvmlDeviceGetComputeRunningProcesses_v2", refuse_version);
  CHECK(read().value().at(0).pid == 7);
}

TEST_CASE_FIXTURE(Lists, "a list of any length is read, whether or not the driver tells how long it is") {
  driver.set("nvmlDeviceGetComputeRunningProcesses_v3", list_compute);
  for (unsigned i = 0; i < 500; ++i) g_compute.push_back({i + 1, 0});
  CHECK(read().value().size() == 500);
  g_tells_needed = false;
  CHECK(read().value().size() == 500);
}

TEST_CASE_FIXTURE(Lists, "a list that outgrows every buffer is unknown, not empty, and is given up") {
  driver.set("nvmlDeviceGetComputeRunningProcesses_v3", list_compute);
  for (unsigned i = 0; i < 65; ++i) g_compute.push_back({i + 1, 0});
  g_triples = true;
  CHECK_FALSE(read());
  CHECK(outcome == kInsufficientSize);
  CHECK(driver.calls["compute"] <= 8);
}

TEST_CASE_FIXTURE(Lists, "a process on both lists is one, and all ones is no amount of memory") {
  driver.set("nvmlDeviceGetComputeRunningProcesses_v3", list_compute);
  driver.set("nvmlDeviceGetGraphicsRunningProcesses_v3", list_graphics);
  g_compute = {{1, 100}, {2, kAbsent64}, {4, 10}, {4, 20}};
  g_graphics = {{1, 100}, {3, 300}};
  const auto processes = read().value();
  REQUIRE(processes.size() == 4);
  CHECK(processes[0].kind == ProcessKind::compute_and_graphics);
  CHECK(processes[0].used_bytes == 100U);
  CHECK(processes[1].kind == ProcessKind::compute);
  CHECK_FALSE(processes[1].used_bytes);
  CHECK(processes[2].used_bytes == 30U);
  CHECK(processes[3].kind == ProcessKind::graphics);
}

Return list_clients_of_mps(Handle device, unsigned* count, void* buffer) {
  FakeDriver::enter("mps", device);
  return write_list({{1, 100}, {5, 500}}, 24, count, buffer);
}

TEST_CASE("the clients of MPS, on a list of their own, compute; where nothing does it is not asked for") {
  Lists lists;
  lists.driver.set("nvmlDeviceGetComputeRunningProcesses_v3", list_compute);
  lists.driver.set("nvmlDeviceGetMPSComputeRunningProcesses_v3", list_clients_of_mps);
  CHECK(lists.read().value().empty());
  CHECK(lists.driver.calls["mps"] == 0);
  g_compute = {{1, 100}};
  const auto processes = lists.read().value();
  REQUIRE(processes.size() == 2);
  CHECK(processes[0].used_bytes == 100U);
  CHECK(processes[1].pid == 5);
  CHECK(processes[1].kind == ProcessKind::compute);
}

TEST_CASE_FIXTURE(Lists, "a list that may not be seen is unknown; one that does not exist is not missed") {
  driver.set("nvmlDeviceGetComputeRunningProcesses_v3", refuse_permission);
  CHECK_FALSE(read());
  driver.set("nvmlDeviceGetComputeRunningProcesses_v3", list_compute);
  driver.remove("nvmlDeviceGetGraphicsRunningProcesses_v3");
  CHECK(read().value().empty());
}

TEST_CASE("bytes that do not tell the size leave it to the symbols, and to pids that can be") {
  std::vector<std::byte> buffer(10 * 32, kCanary);
  CHECK_FALSE(written_entry_size(buffer, 0, 9));
  CHECK_FALSE(written_entry_size(buffer, 2, 9));
  std::fill_n(buffer.begin(), 40, std::byte{0});
  CHECK_FALSE(written_entry_size(buffer, 2, 9));
  std::fill_n(buffer.begin(), 9 * 24, std::byte{0});
  CHECK(written_entry_size(buffer, 2, 9) == 24U);
}

TEST_CASE_FIXTURE(Lists, "R535 before 535.98 is known by the functions beside its list") {
  driver.set("nvmlDeviceGetComputeRunningProcesses_v3", list_unfinished);
  driver.set("nvmlDeviceGetConfComputeMemSizeInfo", never_called);
  CHECK(read().value().at(1).pid == 16040);
}

}  // namespace
}  // namespace berth::nvml::process_list_test
