#include "berth/receipts/shared_looks.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/device/snapshot_codec.h"
#include "berth/device/vendor.h"
#include "berth/sys/socket_message.h"
#include "berth/usage/run_samples.h"

namespace berth::leasing {
namespace {

constexpr uid_t kRoot = 0;
// There is one sampler for each user. A user who connects again and again delays no look by more
// than these.
constexpr int kMostAtOnce = 256;
constexpr std::size_t kMostAskers = 1000;

bool is_told_to_all(const Device& device) {
  return vendor_of(device).tells_all_users;
}

}  // namespace

std::optional<sys::SocketName> told_looks(const std::string& path) {
  struct stat pids{};
  if (::stat("/proc/self/ns/pid", &pids) != 0) return std::nullopt;
  return sys::socket_name("looks", kRoot, path, fmt::format("{}", pids.st_ino));
}

void LookTeller::listen(const std::string& path) {
  const auto name = told_looks(path);
  if (socket_ && name == name_) return;
  name_ = name;
  socket_ = name_ ? sys::listen_at(*name_) : sys::Descriptor();
}

void LookTeller::hear(const std::string& path) {
  if (::geteuid() != kRoot) return;
  listen(path);
  std::erase_if(askers_, [](const auto& each) {
    const Asker& asker = each.second;
    return asker.is_told && sys::is_all_read(asker.connection.get());
  });
  for (int left = kMostAtOnce; left > 0 && socket_; --left) {
    sys::Descriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    const auto user = sys::peer_user(connection.get());
    if (user && askers_.size() < kMostAskers) askers_.try_emplace(*user, Asker{std::move(connection)});
  }
}

void LookTeller::tell(const Snapshot* look) {
  if (look == nullptr || !std::ranges::all_of(look->devices, is_told_to_all)) {
    std::erase_if(askers_, [](const auto& each) { return !each.second.is_told; });
    return;
  }
  std::string text;
  for (auto& [user, asker] : askers_) {
    if (std::exchange(asker.is_told, true)) continue;
    if (text.empty()) text = encode_snapshot(look_for_samplers(*look));
    // A look that is longer than the socket holds is cut off, and does not count.
    (void)sys::send_message(asker.connection.get(), text);
    ::shutdown(asker.connection.get(), SHUT_WR);
  }
}

}  // namespace berth::leasing
