#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/request.h"

namespace berth {

/// A request as it goes to Slurm: `berth run --on slurm`.
struct SrunWish {
  Request request;
  std::optional<std::int64_t> wait_s;      ///< 0: not at all; nullopt: for ever
  std::string note;                        ///< "": none
  std::vector<std::string> only, without;  ///< nodes
  std::string folder;                      ///< "": as here
  std::string passed_variables{"all"};     ///< "all", "none", or names with commas
  bool on_terminal = false;                ///< the command gets one
};

/// Options of srun that mean the same. Error: `usage`, with the first wish that Slurm cannot fulfil: it gives
/// whole GPUs, of a type at most.
Result<std::vector<std::string>> srun_options(const SrunWish& wish);

}  // namespace berth
