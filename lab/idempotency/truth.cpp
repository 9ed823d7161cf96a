// SPDX-License-Identifier: Apache-2.0
#include "idempotency/truth.h"

#include <set>
#include <unordered_map>
#include <utility>

namespace firebreak::idempotency {

TraceTruth find_truth(std::span<const softgpu::ObservedAccess> accesses) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> own;        // thread and byte: written by it
  std::unordered_map<std::uint64_t, std::uint32_t> read_first;  // byte to line
  std::unordered_map<std::uint64_t, std::uint32_t> written;     // byte to line
  TraceTruth truth;
  for (const softgpu::ObservedAccess& access : accesses) {
    const bool is_atomic = access.access == softgpu::GpuAccess::Atomic;
    truth.has_atomic = truth.has_atomic || is_atomic;
    for (std::uint64_t byte = access.address; byte < access.address + access.size_bytes; ++byte) {
      const bool reads = access.access == softgpu::GpuAccess::Load || is_atomic;
      if (reads && !own.contains({access.thread, byte})) read_first.try_emplace(byte, access.ptx_line);
      if (access.access == softgpu::GpuAccess::Load) continue;
      written.try_emplace(byte, access.ptx_line);
      own.emplace(access.thread, byte);
    }
  }
  truth.is_idempotent = !truth.has_atomic;
  for (const auto& [byte, line] : written) {
    const auto found = read_first.find(byte);
    if (found == read_first.end()) continue;
    truth.is_idempotent = false;
    truth.address = byte;
    truth.read_line = found->second;
    truth.write_line = line;
    break;
  }
  return truth;
}

}  // namespace firebreak::idempotency
