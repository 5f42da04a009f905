#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/request.h"

namespace berth {

/// A request for Slurm: `berth run --on slurm`.
struct SrunWish {
  Request request;
  std::optional<std::int64_t> wait_s;      ///< 0: not at all; nullopt: for ever
  std::string note;                        ///< "": none
  std::vector<std::string> only, without;  ///< nodes
  std::string folder;                      ///< "": as here
  std::string passed_variables{"all"};     ///< "all", "none", or names separated by commas
  bool on_terminal = false;                ///< the command gets one
};

/// The options of srun that mean the same. Error: `usage`, with the first wish that Slurm cannot
/// fulfil: Slurm gives whole GPUs only, and at most one type can be named.
Result<std::vector<std::string>> srun_options(const SrunWish& wish);

}  // namespace berth
