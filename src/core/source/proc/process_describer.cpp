#include "berth/source/proc/process_describer.h"

namespace berth::source {

void ProcessDescriber::describe(Device& device) {
  if (!device.processes) return;
  for (Process& process : *device.processes) {
    details_.fill(process);
    if (!process.uid) continue;
    if (const auto name = names_.known(*process.uid)) {
      process.user = *name;
    } else {
      unnamed_.insert(*process.uid);
    }
  }
}

void ProcessDescriber::finish(Sink& sink) {
  if (details_.missed_some() && in_nested_pid_namespace(proc_)) {
    sink.note(
        "This is a container with process ids of its own: the driver lists processes that cannot be seen "
        "from here, or none.");
  }
  if (unnamed_.empty()) return;
  sink.begin({.kind = Stage::Kind::users});
  for (const std::uint32_t uid : unnamed_) {
    if (const std::string& name = names_.ask(uid); !name.empty()) sink.user(uid, name);
  }
}

}  // namespace berth::source
