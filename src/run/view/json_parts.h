#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/view/json_value.h"
#include "berth/view/listing.h"

// Parts that several documents have; only for this layer.
namespace berth::view {

/// In the core, "" means that a text is not known, and 0 that a time is not known.
Json text_or_null(std::string_view text);
Json seconds_or_null(std::int64_t at_s);

/// The beginning of a document.
Json started(std::string_view kind);
Json taken_at(const Snapshot& snapshot);

Json request_json(const Request& request);
Json verdict_json(const Verdict& verdict);
Json identity_json(const Device& device);
/// `verdict`: null for a GPU that is split by MIG. `leases`: those of the listing's ledger.
Json device_json(const Device& device, const Verdict* verdict, const Listing& listing,
                 const LeasesByDevice& leases);
Json ticket_json(const Ticket& ticket, std::int64_t booted_at_s);
/// By user, the counts that are named; without users of whom all are 0.
Json unlisted_json(const std::vector<Unlisted>& unlisted,
                   std::initializer_list<std::pair<const char*, std::size_t Unlisted::*>> counts);

/// The leases of the ledger, each as in a listing.
Json leases_of(const Ledger& ledger, std::int64_t booted_at_s);

}  // namespace berth::view
