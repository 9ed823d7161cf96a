// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/domain_membership.h"

#include <sys/stat.h>

#include <array>
#include <string>

#include "ground/os/self.h"
#include "softgpu/machine/mps_protocol.h"

namespace firebreak::softgpu::driver {

namespace {

constexpr Milliseconds connect_timeout(2'000);
constexpr Milliseconds answer_timeout(10'000);  // the daemon may have to start its server first

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

Answer<DomainMembership> own_domain() {
  auto domain = Domain::create(0);
  if (!domain) return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  const auto slot = (*domain)->join(os::own_pid());
  if (!slot) return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  return DomainMembership{std::move(*domain), *slot, std::nullopt};
}

Answer<DomainMembership> attach(const std::string& path, const UvmDescriptor& va_space,
                                const RmClient& rm_client) {
  auto socket = os::connect(path, connect_timeout);
  if (!socket) return refuse(CUDA_ERROR_MPS_CONNECTION_FAILED);
  const std::array descriptors{va_space.fd(), rm_client.fd()};
  const mps::Request request{mps::RequestKind::Attach, {}};
  if (!mps::send_request_with(*socket, request, descriptors, connect_timeout)) {
    return refuse(CUDA_ERROR_MPS_CONNECTION_FAILED);
  }
  auto received = mps::receive_attach_answer(*socket, answer_timeout);
  if (!received) return refuse(CUDA_ERROR_MPS_CONNECTION_FAILED);
  if (received->answer.result != CUDA_SUCCESS) return refuse(received->answer.result);
  auto domain = Domain::from(std::move(received->domain));
  if (!domain || received->answer.slot >= DomainPage::client_count_max) {
    return refuse(CUDA_ERROR_MPS_RPC_FAILURE);
  }
  return DomainMembership{std::move(*domain), received->answer.slot, std::move(*socket)};
}

}  // namespace

Answer<DomainMembership> join_domain(const UvmDescriptor& va_space, const RmClient& rm_client) {
  const std::string path = mps::control_socket_path();
  if (!os::check_socket_path(path)) return refuse(CUDA_ERROR_MPS_CONNECTION_FAILED);
  return exists(path) ? attach(path, va_space, rm_client) : own_domain();
}

}  // namespace firebreak::softgpu::driver
