#pragma once

#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/request.h"

namespace berth {

/// What a job asks for, as its file has it: which GPUs, and of which hosts.
struct StoredRequest {
  Request request;          ///< settled
  bool says_count = false;  ///< else Request::count is usual_count
  std::string note;
  std::string ids;     ///< --ids; "": indices
  std::string mask;    ///< --mask; "": inherit
  std::string source;  ///< --source; "": auto
  bool anywhere = false;
  std::string hosts;
  std::vector<std::string> only, without;  ///< --host, --not-host
  std::string folder;                      ///< on the other host
  std::string env;                         ///< --env; "": all
  std::string near;

  /// Two requests are the same if the same options say them.
  bool operator==(const StoredRequest& other) const;
};

/// The options of `berth submit` that say it again: "--count=2".
std::vector<std::string> typed_options(const StoredRequest& stored);

}  // namespace berth
