// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/presence.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "os/self.h"

namespace firebreak::softgpu::driver {
namespace {

std::string name_of_this_process() {
  struct stat pid_namespace {};
  (void)::stat("/proc/self/ns/pid", &pid_namespace);
  return "cuda-uvmfd-" + std::to_string(pid_namespace.st_ino) + "-" + std::to_string(os::own_pid());
}

}  // namespace

Answer<Presence> Presence::create() {
  os::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  const std::string name = name_of_this_process();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // two numbers: it fits
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  return Presence(std::move(socket));
}

}  // namespace firebreak::softgpu::driver
