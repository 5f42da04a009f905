#pragma once

#include <string>
#include <string_view>

#include "berth/agent/peer.h"
#include "berth/core/error.h"

namespace berth::serve {

/// Takes the document that a command has asked for out of the answer. `asking`: "asking http://hub". Error:
/// `failure`, with why there is none and what to do.
Result<std::string> document_in(Response response, std::string_view asking);

}  // namespace berth::serve
