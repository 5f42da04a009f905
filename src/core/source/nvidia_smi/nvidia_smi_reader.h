#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/source/nvidia_smi/smi_query.h"
#include "berth/source/proc/process_details.h"
#include "berth/source/source.h"

namespace berth::nvidia_smi {

/// Reads the machine through the program nvidia-smi: for where the driver's library cannot be
/// loaded. It says what that program can say, in the same words as NvmlReader, and memory in whole
/// MiB.
class NvidiaSmiReader : public source::Reader {
 public:
  /// nvidia-smi is stopped when nobody reads from `listener` any more.
  explicit NvidiaSmiReader(int listener) : listener_(listener) {}
  bool found() override;
  Result<void> read(const source::ReadRequest& request, source::Sink& sink) override;

 private:
  Result<std::vector<Device>> read_devices(ReadingSet readings, std::string& driver_version);
  Result<std::vector<Device>> read_one_by_one(ReadingSet readings, std::string& driver_version);
  void add_reported(std::vector<Device>& devices, ReadingSet readings);
  std::string print(const std::vector<std::string>& arguments);

  int listener_;
  source::UserNames names_;
};

/// Gives each device what the report has of it, and puts the MIG instances behind their GPUs. Pure.
std::vector<Device> join_report(std::vector<Device> devices, const std::vector<ReportedGpu>& report,
                                const std::vector<ListedInstance>& instances, ReadingSet readings);

/// The row for a device that nvidia-smi refuses to speak of, from what it prints instead. Pure.
Device refused_device(unsigned index, std::string_view message);

/// True if PATH has a program of that name.
bool is_installed();

struct Printed {
  std::string text;  ///< on both its outputs: it tells errors on either
  int status = 0;
};

/// Runs nvidia-smi to its end, or until nobody is left at the other end of `listener`, for whom it
/// is run: it can hang as the driver does. Error: `no_driver` when it cannot be started, `failure`
/// when it did not end by itself.
Result<Printed> run(const std::vector<std::string>& arguments, int listener);

/// The Error for a run that ended with a status other than 0.
Error error_of(const Printed& printed);

}  // namespace berth::nvidia_smi
