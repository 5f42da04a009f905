#pragma once

namespace berth::sys {

/// Gives memory back to the kernel that this process has used and uses no longer, on its heap and
/// on the stack of its first thread. For a process that will sleep long: what it needs again comes
/// back empty, page by page. Takes some 30 µs. Not for a host program's process, whose heap may be
/// large.
void give_back_memory();

}  // namespace berth::sys
