#pragma once

namespace berth {

/// Whether CUDA is up in this process, so that CUDA_VISIBLE_DEVICES was read and is looked at no more. Asks
/// the driver's library if it is loaded, and never loads it.
bool cuda_is_up();

}  // namespace berth
