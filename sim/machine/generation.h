// A driver generation is a set of exported symbols plus the few ABI facts that symbols cannot tell.
// Every generation is the same objects, linked with another version script and another one-line
// file that defines kBuiltGeneration; programs that are of no generation define it empty.
#pragma once

#include <string_view>

namespace berth::sim {

struct Generation {
  const char* name;     // also the directory of its libraries
  const char* driver;   // reported when the scenario names no version
  int branch;           // 535 of 535.54.03
  int cuda;             // 1000 * major + 10 * minor
  int nvml_major;       // "12" of "12.550.163.01"
  bool wide_processes;  // `_v3` process calls write 32 bytes an entry (535.43 to 535.86)

  /// MIG UUIDs read MIG-GPU-<parent>/<gi>/<ci>.
  [[nodiscard]] bool old_mig_uuids() const { return branch < 470; }
  /// Product names begin with "NVIDIA ".
  [[nodiscard]] bool prefixed_names() const { return branch >= 470; }
  /// The v1 memory call counts the driver's own reserve as used.
  [[nodiscard]] bool reserve_is_used() const { return branch >= 510; }
  /// What a struct with a wrong version word is answered with: FUNCTION_NOT_FOUND, later
  /// ARGUMENT_VERSION_MISMATCH.
  [[nodiscard]] int version_mismatch() const { return branch < 520 ? 13 : 25; }
};

/// The generation that these objects were linked as, or "" in a program.
extern const char* const kBuiltGeneration;

/// nullptr if there is none of that name.
const Generation* generation_named(std::string_view name);
/// The generation that a driver version belongs to; nullptr if the text is no version.
const Generation* generation_of_driver(std::string_view version);
const Generation& default_generation();
/// All names, for messages: "r450, r460, …".
const char* generation_names();

}  // namespace berth::sim
