#pragma once

#include <boost/asio/ssl/context.hpp>
#include <string>

#include "berth/base/error.h"

namespace berth::net {

/// Uses this certificate for the connections of a context, as server or as client. Error: a file
/// cannot be read, or the key belongs to another certificate.
Result<void> use_key_pair(boost::asio::ssl::context& context, const std::string& certificate,
                          const std::string& key);

}  // namespace berth::net
