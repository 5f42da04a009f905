#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/slurm/sbatch_options.h"

// How the values of Slurm's options are read. The table in sbatch_options.cpp says which option is
// read by which of these.
namespace berth {

/// How many GPUs, and of which type.
struct SlurmGpus {
  unsigned count = 1;
  std::string type;

  bool operator==(const SlurmGpus&) const = default;
};

/// A wish in the making: what several options say together is settled at the end.
struct SlurmReading {
  SlurmWish wish;
  std::optional<SlurmGpus> gpus;
  std::string mail_user;
  std::vector<std::string_view> mail_events;  ///< as --notify-on has them
};

/// Each takes the value of a row of the table. Error: `usage`, with the option and what to do
/// instead.
Result<void> read_gres(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_gpus(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_array_option(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_time(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_dependency(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_begin(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_mail_user(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_mail_type(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_nodes(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_tasks(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_output(SlurmReading& reading, const SlurmOption& option, std::string_view value);
Result<void> read_error(SlurmReading& reading, const SlurmOption& option, std::string_view value);

/// The wish once all options are read.
SlurmWish settled(SlurmReading reading);

}  // namespace berth
