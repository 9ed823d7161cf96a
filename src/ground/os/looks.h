// SPDX-License-Identifier: Apache-2.0
/// Looks at other processes (os::Looks, ground/os/kernel.h), done by the thread that asks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/kernel.h"

namespace firebreak::os {

/// Longest time of one look at descriptors: a fault that comes just then waits for it. Where the machine is
/// busy a look sees fewer than it could.
inline constexpr Nanoseconds longest_look_at_descriptors = std::chrono::microseconds(250);

/// Makes looks of this thread, for as long as they last; at descriptors no longer than `at_descriptors`, but
/// at as many as have to be.
std::shared_ptr<Looks> direct_looks(Nanoseconds at_descriptors = longest_look_at_descriptors);

/// The whole of a small file. Protocol: it is larger than 16 MiB.
Result<std::string> read_small_file(const std::string& path);
/// The same of one that is open; `path` is for the error.
Result<std::string> read_to_end(const Fd& file, const std::string& path);

/// Largest number of descriptors in one look, which takes about half a millisecond for all of them.
inline constexpr std::size_t most_descriptors_in_a_look = 256;
/// Smallest number of descriptors in one look, however long that takes: most processes have fewer.
inline constexpr std::size_t fewest_descriptors_in_a_look = 64;
/// Largest number of descriptors that are looked at of a process that has more.
inline constexpr std::size_t most_descriptors_of_a_process = 4096;
/// Length of a link's text that is told: whatever we look for is shorter.
inline constexpr std::size_t most_link_bytes = 300;

/// Whether to read that path, or to follow it, may last as long as a process likes: it leads into the folder
/// of one in /proc, and to no file of which we know better (docs/how/security.md has who was seen to wait).
bool may_have_to_wait(std::string_view path);

/// The process behind a pidfd; 0: it is gone, or none that we can see.
pid_t process_behind(const Fd& pidfd);

}  // namespace firebreak::os
