#pragma once

#include <vector>

#include "berth/hosts/ssh.h"
#include "berth/machines/bare_host.h"
#include "berth/request/lab_host.h"

namespace berth::hosts {

/// What nvidia-smi says on hosts that have no Berth, in their order. All are asked at once, each by
/// one call of ssh, within a time and up to a size. Error: there is no answer that can be read.
std::vector<Result<std::vector<BareDevice>>> ask_bare_hosts(const SshProgram& ssh,
                                                            const std::vector<LabHost>& hosts);

}  // namespace berth::hosts
