#include "berth/doctor/blind_spots.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "berth/doctor/doctor_directory.h"
#include "berth/sys/descriptor.h"

namespace berth::leasing {
namespace {

// The kernel gives the namespaces that the machine starts with fixed numbers (PROC_PID_INIT_INO).
constexpr std::string_view kMachinesPids = "pid:[4026531836]";

bool has_the_machines_pids() {
  std::array<char, 64> name{};
  const ssize_t size = ::readlink("/proc/self/ns/pid", name.data(), name.size());
  return size < 0 || std::string_view(name.data(), static_cast<std::size_t>(size)) == kMachinesPids;
}

/// The first process runs as root, and anybody may read of it what hidepid does not hide.
bool sees_others_processes() {
  return static_cast<bool>(sys::Descriptor(::open("/proc/1/stat", O_RDONLY | O_CLOEXEC)));
}

/// As systemd, Docker and Podman tell what they start.
bool is_in_container() {
  const char* told = std::getenv("container");
  return (told != nullptr && *told != '\0') || ::access("/.dockerenv", F_OK) == 0 ||
         ::access("/run/.containerenv", F_OK) == 0;
}

}  // namespace

std::vector<std::string> blind_spots(const store::DirectoryChoice& choice) {
  std::vector<std::string> spots;
  for (const Finding& each : examine_view(choice))
    spots.push_back(fmt::format("{}; {}", each.found, each.remedy));
  if (choice.origin == store::DirectoryOrigin::fallback && is_in_container())
    spots.push_back(
        fmt::format("this container has no {0}, so no lease of the machine is seen; start it "
                    "with --volume {0}:{0}",
                    store::kSiteDirectory));
  if (!has_the_machines_pids()) {
    spots.emplace_back(
        "this container numbers its processes itself, so it cannot see the machine's processes; start it "
        "with --pid=host");
  } else if (!sees_others_processes()) {
    spots.emplace_back(
        "/proc hides the processes of other users (hidepid), so whose they are is not seen; add this user to "
        "the group that mount shows as gid=");
  }
  return spots;
}

}  // namespace berth::leasing
