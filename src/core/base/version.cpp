#include "berth/base/version.h"

namespace berth {

std::string_view version() {
  return BERTH_VERSION;
}

}  // namespace berth
