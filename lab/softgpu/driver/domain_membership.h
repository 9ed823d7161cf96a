// SPDX-License-Identifier: Apache-2.0
/// The fault domain of this process: an MPS server's, or one of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "ground/os/socket.h"
#include "softgpu/driver/answer.h"
#include "softgpu/machine/domain.h"
#include "softgpu/machine/rm_client.h"
#include "softgpu/machine/uvm_ring.h"

namespace firebreak::softgpu::driver {

struct DomainMembership {
  std::shared_ptr<Domain> domain;
  std::uint32_t slot = 0;
  std::optional<os::Socket> server;  ///< held open as long as the process is a client
};

/// Asks the MPS daemon that CUDA_MPS_PIPE_DIRECTORY names, if there is one. MPS_CONNECTION_FAILED when its
/// socket is there but nobody answers or the path is too long, MPS_SERVER_NOT_READY when it is ending,
/// MPS_MAX_CLIENTS_REACHED when the server is full. The server learns of the process's descriptors, and sees
/// by them whether its address space is still there when it has died.
Answer<DomainMembership> join_domain(const UvmDescriptor& va_space, const RmClient& rm_client);

}  // namespace firebreak::softgpu::driver
