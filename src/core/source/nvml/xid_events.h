#pragma once

#include <map>

#include "berth/source/nvml/library.h"

namespace berth::nvml {

/// The Xids that the driver reports as events while somebody looks again and again. Nobody but root
/// may read them in the kernel's log, and events are for everybody; but the driver keeps them only
/// for a client that has registered before.
class XidEvents {
 public:
  /// Takes what has come since the last time. Never waits.
  void take(Library& library);
  /// From now on, the events of this GPU come too. Asks the driver once for each GPU.
  void watch(Library& library, unsigned index);
  /// Gives the GPU, or its instance, the Xid that says most, if the kernel's log does not tell.
  void note(Device& device) const;
  /// The library starts again, and what was registered is gone.
  void forget() { *this = {}; }

 private:
  struct Watched {
    Handle handle = nullptr;
    unsigned xid = 0;  ///< 0: none has come
  };

  EventSet set_ = nullptr;
  std::map<unsigned, Watched> watched_;  ///< by index
};

}  // namespace berth::nvml
