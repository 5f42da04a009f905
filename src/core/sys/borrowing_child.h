#pragma once

#include <sys/types.h>

#include <cstddef>

/// For each function of such a child. The child has a stack of its own, which a sanitizer would
/// take for a violation of its parent's.
#define BERTH_BORROWED_MEMORY [[gnu::no_sanitize_address, gnu::no_sanitize_thread]]

namespace berth::sys {

/// Makes a child that borrows the memory of this process until it becomes another program or ends,
/// and calls `begin` in it. Meanwhile this thread sleeps; then it sees what `begin` has written. A
/// fork would copy the tables of all pages, and afterwards each page that either of the two writes.
///
/// REQUIRES: `begin` allocates nothing and takes no lock. This thread takes no signal (see
/// SignalsBlocked), since a handler would run in the child too.
///
/// `words`: how many its new program gets. -1: it could not be made; errno says why.
pid_t start_borrowing(int (*begin)(void*), void* argument, std::size_t words);

}  // namespace berth::sys
