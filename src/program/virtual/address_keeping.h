// SPDX-License-Identifier: Apache-2.0
/// What libc's functions answer a driver that comes up as the second one of a process (shared/measurements:
/// "The bare fact"). Three things stand in the way of one: it binds a socket that the first has bound; it
/// takes the addresses that the first has reserved for taken; and a reservation is a placeholder of the CPU's
/// that the first has already. The functions here decide what is asked for in the driver's place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace firebreak::virtual_driver {

/// While one lives, an instance other than the program's own driver comes up. One at a time in a process;
/// the threads that a driver starts meanwhile are meant as well.
class ComingUp {
 public:
  explicit ComingUp(std::uint32_t slot);
  ComingUp(const ComingUp&) = delete;
  ComingUp& operator=(const ComingUp&) = delete;
  ~ComingUp();
  /// 0: none does.
  static std::uint32_t slot();
};

/// Whether somebody asks for a placeholder inside the window, whatever for.
bool is_placeholder(std::uint64_t address, int fd, int protection, int flags);

/// The abstract socket name that is to be bound in place of this one (without its first zero byte): of the
/// socket by which a driver says that it is there, one that the instance which comes up has alone.
std::string socket_name(std::string_view asked_for);

/// The text of /proc/self/maps without the window.
std::string without_window(std::string_view maps);

}  // namespace firebreak::virtual_driver
