#pragma once

#include <boost/asio/ssl/context.hpp>
#include <string>

#include "berth/core/error.h"

namespace berth::serve {

/// Shows this certificate to whoever connects, or is connected to. Error: a file cannot be read, or the key
/// is another certificate's.
Result<void> use_key_pair(boost::asio::ssl::context& context, const std::string& certificate,
                          const std::string& key);

}  // namespace berth::serve
