#pragma once

#include <span>
#include <string>
#include <string_view>

#include "berth/site/site_values.h"

// The table of the keys of the site file. Reading, the list of known keys and the words of `berth
// doctor` are made from it.
namespace berth::site {

struct Key {
  std::string_view name;
  Result<void> (*read)(Page&, std::string_view key, const toml::node&);
  /// What is in force, for `berth doctor`; "": there is nothing to say. null: as another row says.
  std::string (*words)(const SitePolicy&) = nullptr;
  std::string_view sentence = "{}";  ///< in which these words are said
};
std::span<const Key> keys();

/// All rules that are in force, the usual ones included: "up to 64 MiB in use that nobody explains
/// is tolerated; …".
std::string policy_in_words(const SitePolicy& policy);

}  // namespace berth::site
