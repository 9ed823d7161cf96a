// SPDX-License-Identifier: Apache-2.0
/// The requests of shared/abi/uvm_ranges.h on a process's UVM descriptor, whoever asks.
#pragma once

#include "ground/os/fd.h"

namespace firebreak::softgpu {

/// False: it is another request, or the descriptor is none of UVM's. What goes wrong otherwise is told in the
/// argument's rm_status, as by the driver.
bool request_uvm_range(const os::Fd& fd, unsigned long request, void* argument);

}  // namespace firebreak::softgpu
