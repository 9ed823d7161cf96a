// SPDX-License-Identifier: Apache-2.0
/// What a process has mapped where: /proc/PID/maps.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/file_identity.h"

namespace firebreak::os {

struct MappedRegion {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< one past the last byte
  std::uint64_t offset_bytes = 0;
  FileIdentity file;
  bool writable = false;  ///< by the CPU
};

/// All regions of a process, by address. They are read one page of text at a time, so what changes meanwhile
/// may show or not.
Result<std::vector<MappedRegion>> memory_map(pid_t pid);

/// Those of them that have an address in [begin, end). From Linux 6.11 on it costs as much as there are such
/// (PROCMAP_QUERY, include/uapi/linux/fs.h), however many others the process has; before, all are read.
Result<std::vector<MappedRegion>> memory_map_within(pid_t pid, std::uint64_t begin, std::uint64_t end);

/// The same from the text of such a file; lines that are none are left out.
std::vector<MappedRegion> parse_memory_map(std::string_view text);

}  // namespace firebreak::os
