#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/verdict/ledger.h"
#include "berth/view/layout.h"
#include "berth/view/listing.h"

namespace berth::view {

std::string listing_json(const Listing& listing, Layout layout);

/// The waiting requests, each with its reason in words, and how many of each user are not among
/// them.
std::string queue_json(const std::vector<Standing>& waiters, const std::vector<Unlisted>& unlisted,
                       Layout layout);

/// The leases alone, each as in a listing. `booted_at_s`: as in Facts.
std::string leases_json(const Ledger& ledger, std::int64_t booted_at_s, Layout layout);

}  // namespace berth::view
