#pragma once

#include <string>
#include <vector>

#include "berth/base/error.h"

namespace berth::nvidia_smi {

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
