#pragma once

#include <string>

#include "berth/source/source.h"
#include "berth/sys/descriptor.h"

// The sampler: one process for each user and machine, which looks at the GPUs of the user's runs
// again and again.
//
// A name in the kernel's abstract space of sockets is both the lock and the way to it: only one
// process can have the name, and it ends with the process. A run connects, and sends a SampledLease
// and a file in memory, into which the sampler writes a RunSamples after each look. The connection
// is the run's wish: when the kernel closes it, however the run ended, the sampler forgets the run,
// and it ends with the last one. It has no descriptor of a lease, and keeps nothing on a disk.
//
// Another user may take the name first. The kernel tells whose a socket is, and then there are no
// samples.
namespace berth::receipts {

/// A connection to the sampler of this user for the machine whose lease directory is at `path`. It
/// is started if there is none. Empty: there is none, and none can be.
sys::Descriptor connect_to_sampler(const std::string& path, source::SourceKind source);

}  // namespace berth::receipts
