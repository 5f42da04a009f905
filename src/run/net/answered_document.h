#pragma once

#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/http/server_to_ask.h"

namespace berth::net {

/// Takes the document that a command has asked for out of the answer. `asking`: "asking
/// http://hub". Error: `failure`, with why there is none and what to do.
Result<std::string> document_in(http::Response response, std::string_view asking);

}  // namespace berth::net
