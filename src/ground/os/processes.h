// SPDX-License-Identifier: Apache-2.0
/// Facts of other processes as /proc shows them.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/os/kernel.h"

namespace firebreak::os {

// --- processes
// What /proc says of all processes, and of one that is not ours.

/// Returns the processes of this machine, in no order.
std::vector<pid_t> all_processes(Kernel& kernel);

// /proc/PID/status never waits for the process, and /proc/PID/stat may (ground/os/looks.h).

/// The pid of its parent now; 0: it is gone.
pid_t parent_of(Kernel& kernel, pid_t pid);

/// The letter that Linux has for its state, as 'R', 'T' or 'Z', by its folder in /proc; 0: it is gone.
char state_in(Kernel& kernel, const std::string& folder);

/// Returns the processes whose parent is `pid` now, in no order.
std::vector<pid_t> children_of(Kernel& kernel, pid_t pid);

/// True when it is in a PID namespace within ours, as a process of a container is. False also where it is
/// gone.
bool is_in_inner_namespace(Kernel& kernel, pid_t pid);

/// Finds which of a process and its children has that number in the PID namespace of `pid`; none: none of
/// them.
std::optional<pid_t> find_numbered(Kernel& kernel, pid_t pid, pid_t number);

/// The folder of a process in /proc, without a slash at its end.
std::string proc_folder(pid_t pid);

/// Returns all threads of a process but its first, in no order: they may go on when that one has ended.
std::vector<pid_t> other_threads(Kernel& kernel, pid_t pid);

/// The folder of a thread in /proc: of the first one, its process's.
std::string thread_folder(pid_t pid, pid_t thread);

/// One that shows what its process has: the first; where that has ended, another that lives.
pid_t living_thread(Kernel& kernel, pid_t pid);

/// Returns the environment that a process was started with: NAME=VALUE, each with a NUL at its end. Empty
/// also where that is not for us to see.
std::string environment_of(Kernel& kernel, pid_t pid);

/// Calls back with each of the texts that end with a NUL, as in an environment or a command line.
void for_each_text(std::string_view texts, const std::function<void(std::string_view)>& callback);

/// The last value that an environment, as /proc shows it, gives a variable.
std::optional<std::string> variable_in(std::string_view environment, std::string_view name);

// --- process stat
// What stands in /proc/PID/stat. Pure, but for image_of().

/// Linux's PF_EXITING, PF_KTHREAD and PF_RANDOMIZE.
inline constexpr std::uint64_t flag_exiting = 0x4;
inline constexpr std::uint64_t flag_kernel_thread = 0x200000;
inline constexpr std::uint64_t flag_random_addresses = 0x400000;

/// Field `number`, at least 3, as proc(5) counts: the second is the name and may hold anything. Empty: it is
/// not there.
std::string_view stat_field(std::string_view stat, int number);

/// Returns when the process started, in the kernel's ticks since the boot: another process of the same pid
/// has another.
std::string_view start_time(std::string_view stat);

/// The name of its program, as far as Linux keeps it.
std::string_view program_name(std::string_view stat);

/// True when it still runs: no zombie that waits for its parent, and not nothing.
bool is_alive(std::string_view stat);

/// The pid of its parent.
std::string_view parent(std::string_view stat);

/// Returns the process's real user, as /proc/PID/status says. None: it does not say so.
std::optional<uid_t> user_in(std::string_view status);
/// Its numbers in the PID namespaces that it is in, from ours inwards, as /proc/PID/status says. Empty: it
/// does not say so.
std::vector<pid_t> numbers_in(std::string_view status);
/// True when /proc/PID/status says that the process is of that user in each of the four ways: real,
/// effective, saved, and for files. A program that can be somebody else's is not.
bool is_of_user_alone(std::string_view status, uid_t user);

/// Returns where the process's code and its first stack begin: Linux chooses both at random when a program
/// starts, and a child of fork() has those of its parent. Empty: that is not for us to see, or it is gone.
std::string image(std::string_view stat);

/// Returns the image of a process whose stat is `stat`; where its first thread has ended, and shows none,
/// that of another thread. Where Linux does not choose addresses at random (setarch -R, a debugger), all runs
/// of a program have the same: then the image ends with the random bytes that each program is started with
/// (AT_RANDOM), and a child of fork() has as well. Empty: those are not for us to see. Timeout: it is one of
/// these, and does not let itself be looked at.
Result<std::string> known_image_of(Kernel& kernel, pid_t pid, std::string_view stat);
/// The same; empty also where it does not let itself be looked at.
std::string image_of(Kernel& kernel, pid_t pid, std::string_view stat);
std::string image_of(Kernel& kernel, pid_t pid);

/// The process's flags; none where they cannot be read.
std::uint64_t stat_flags(std::string_view stat);

}  // namespace firebreak::os
