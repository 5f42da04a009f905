#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "berth/device/device.h"
#include "berth/source/amd/card.h"
#include "berth/source/proc/kernel_files.h"
#include "berth/source/proc/process_details.h"
#include "berth/source/source.h"

namespace berth::amd {

/// Reads a machine's AMD GPUs from what the kernel tells in sysfs and /proc. No
/// library is loaded.
///
/// Devices are those that compute, in the order in which ROCm's runtime counts
/// them (that of KFD's nodes), then cards that do not.
class AmdReader : public source::Reader {
 public:
  explicit AmdReader(kernel_files::Roots roots) : roots_(std::move(roots)) {}

  bool found() override;
  Result<void> read(const source::ReadRequest& request, source::Sink& sink) override;

 private:
  kernel_files::Roots roots_;
  source::UserNames names_;
};

/// Who is on each of the nodes, in their order; absent where nobody can say.
///
/// Two lists are joined. KFD tells of every process that computes through ROCm,
/// whoever asks. The files of /proc/PID/fdinfo tell of all uses, drawing and
/// Vulkan too, but only of processes that one may look into.
using ProcessLists = std::vector<Reading<std::vector<Process>>>;
ProcessLists read_processes(const kernel_files::Roots& roots, const std::vector<ComputeNode>& nodes);

/// What one fdinfo tells of a client of a card.
struct DrmClient {
  std::string pci_bus_id;
  std::uint64_t client_id = 0;
  std::uint64_t vram_bytes = 0;
  std::uint64_t machine_bytes = 0;  ///< of the machine's memory that the card sees
  bool computed = false;            ///< on the engines for that
  bool drew = false;
};
/// nullopt: it is no client of this driver. Pure.
std::optional<DrmClient> client_in(std::string_view fdinfo);

}  // namespace berth::amd
