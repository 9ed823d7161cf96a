// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/digest.h"

#include <fmt/format.h>

namespace firebreak::workloads {

std::uint64_t digest(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

std::string hexadecimal(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace firebreak::workloads
