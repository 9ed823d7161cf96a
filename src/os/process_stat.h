// SPDX-License-Identifier: Apache-2.0
/// What stands in /proc/PID/stat. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace firebreak::os {

/// Linux's PF_EXITING and PF_KTHREAD.
inline constexpr std::uint64_t flag_exiting = 0x4;
inline constexpr std::uint64_t flag_kernel_thread = 0x200000;

/// Field `number`, at least 3, as proc(5) counts: the second is the name and may hold anything. Empty: it is
/// not there.
std::string_view stat_field(std::string_view stat, int number);

/// When the process started, in the kernel's ticks since the boot: another process of the same pid has
/// another.
std::string_view start_time(std::string_view stat);

/// The name of its program, as far as Linux keeps it.
std::string_view program_name(std::string_view stat);

/// Whether it still runs: no zombie that waits for its parent, and not nothing.
bool is_alive(std::string_view stat);

/// The pid of its parent.
std::string_view parent(std::string_view stat);

/// Where the process's code and its first stack begin: Linux chooses both at random when a program starts,
/// and a child of fork() has those of its parent. Empty: that is not for us to see, or it is gone.
std::string image(std::string_view stat);

/// The process's flags; none where they cannot be read.
std::uint64_t stat_flags(std::string_view stat);

}  // namespace firebreak::os
