#pragma once

#include <cstdint>
#include <string_view>

#include "berth/render/json_value.h"

// The parts that several documents have, of this layer alone.
namespace berth::render {

/// "" is how the core says that a text is not known, 0 that a time is not.
Json text_or_null(std::string_view text);
Json seconds_or_null(std::int64_t at_s);

Json request_json(const Request& request);
Json verdict_json(const Verdict& verdict);
Json identity_json(const Device& device);
/// `verdict`: null for a GPU that is split. `leases`: those of the listing's ledger.
Json device_json(const Device& device, const Verdict* verdict, const Listing& listing,
                 const LeasesByDevice& leases);
Json ticket_json(const Ticket& ticket, std::int64_t booted_at_s);
/// The leases of the ledger, each as in a listing.
Json leases_of(const Ledger& ledger, std::int64_t booted_at_s);

}  // namespace berth::render
