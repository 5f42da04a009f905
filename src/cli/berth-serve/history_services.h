#pragma once

#include <string>

#include "berth/history/history.h"
#include "berth/http/answer.h"

namespace berth::serve {

/// What is asked of the history: of this machine, and by its own name, as a hub asks. `history`
/// must outlive them.
http::ByPath<http::Service> history_services(history::History& history, const std::string& hostname);

}  // namespace berth::serve
