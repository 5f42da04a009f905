#include "berth/hosts/model/version_check.h"

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/base/version.h"

namespace berth {

Result<void> check_host_version(std::string_view version_there) {
  if (version_there == version()) return {};
  return fail(ErrorCode::failure,
              "its Berth is version {}, and this one is {}. Install the same version on both",
              printable(version_there), version());
}

}  // namespace berth
