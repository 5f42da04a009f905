#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth {

struct ExcludedDevice {
  std::string selector;  ///< index, UUID or UUID prefix
  std::string reason;

  bool operator==(const ExcludedDevice&) const = default;
};

/// What the site (and, narrower, the user) has laid down: /etc/berth.toml, ~/.config/berth.toml.
struct SitePolicy {
  std::uint64_t hidden_tolerance_bytes = 512ULL << 20;  ///< memory in use that no listed process explains
  std::vector<ExcludedDevice> excluded;
  std::vector<std::string> ignored_programs;   ///< base names that never count as outsiders
  std::vector<std::string> ignored_users;      ///< user names that never count as outsiders
  std::optional<std::int64_t> default_wait_s;  ///< nullopt: for ever
  /// How long what a command of `berth run` left behind may compute nothing before the lease ends. nullopt:
  /// for as long as it lives.
  std::optional<std::int64_t> idle_leftovers_s;
  bool operator==(const SitePolicy&) const = default;
};

}  // namespace berth
