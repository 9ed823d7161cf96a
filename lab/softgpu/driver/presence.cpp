// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/presence.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ground/os/self.h"
#include "softgpu/environment.h"

namespace firebreak::softgpu::driver {
namespace {

std::string name_of_this_process() {
  struct stat pid_namespace {};
  (void)::stat("/proc/self/ns/pid", &pid_namespace);
  return "cuda-uvmfd-" + std::to_string(pid_namespace.st_ino) + "-" + std::to_string(os::own_pid());
}

/// Copies of this library share nothing else.
bool has_another(pid_t process) {
  constexpr const char* mark = "FIREBREAK_SOFTGPU_FIRST_INSTANCE_OF";
  const std::string number = std::to_string(process);
  if (os::environment_variable(mark) == number) return true;
  ::setenv(mark, number.c_str(), 1);
  return false;
}

/// Copies that somebody has made for an instance of their own are called so.
bool is_copy() {
  Dl_info own{};
  return ::dladdr(reinterpret_cast<void*>(&is_copy), &own) != 0 &&
         std::string(own.dli_fname).find("/library-") != std::string::npos;
}

}  // namespace

Answer<Presence> Presence::create() {
  if (os::environment_variable(environment::one_instance) == "1" && has_another(os::own_pid()))
    return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  if (os::environment_variable(environment::one_instance) == "original" && is_copy())
    return refuse(CUDA_ERROR_OPERATING_SYSTEM);
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
