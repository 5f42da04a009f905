#pragma once

#include <string>

#include "berth/verdict/site_policy.h"

namespace berth::view {

/// The rules of the site in words, those that are usual included: "up to 64 MiB in use that nobody
/// explains is tolerated; …".
std::string policy_in_words(const SitePolicy& policy);

}  // namespace berth::view
