#pragma once

#include <string>

#include "berth/http/answer.h"

namespace berth::serve {

/// The documents under /docs, as `./dev docs` has built them in `folder`: read once, so that nobody
/// waits for a disk later. {} where there are none.
http::ByPath<http::Page> docs_site(const std::string& folder);

/// Where an installation has them, beside this program's folder.
std::string installed_docs();

}  // namespace berth::serve
