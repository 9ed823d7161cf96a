// SPDX-License-Identifier: Apache-2.0
#include "idempotency/truth.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace firebreak::idempotency {
namespace {

// So many bytes at a time are read or written, as a whole.
std::uint64_t common_unit(std::span<const softgpu::ObservedAccess> accesses) {
  std::uint64_t unit = 16;
  for (const softgpu::ObservedAccess& access : accesses)
    unit = std::gcd(unit, std::gcd(access.address, std::uint64_t{access.size_bytes}));
  return unit;
}

struct Touch {
  std::uint64_t address = 0;
  std::uint64_t thread = 0;
  std::uint32_t access = 0;  ///< counts, as they happened
};

}  // namespace

TraceTruth find_truth(std::span<const softgpu::ObservedAccess> accesses) {
  using softgpu::GpuAccess;
  const std::uint64_t unit = common_unit(accesses);
  std::vector<Touch> touches;
  TraceTruth truth;
  for (std::uint32_t i = 0; i < accesses.size(); ++i) {
    const softgpu::ObservedAccess& access = accesses[i];
    truth.has_atomic = truth.has_atomic || access.access == GpuAccess::Atomic;
    for (std::uint64_t at = 0; at < access.size_bytes; at += unit)
      touches.push_back({access.address + at, access.thread, i});
  }
  truth.is_idempotent = !truth.has_atomic;
  const auto key = [](const Touch& touch) { return std::tie(touch.address, touch.thread, touch.access); };
  std::sort(touches.begin(), touches.end(), [&](const Touch& a, const Touch& b) { return key(a) < key(b); });
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::uint32_t read_first = none;  // of the bytes at hand: an access
  std::uint32_t written = none;
  for (std::size_t i = 0; i < touches.size(); ++i) {
    const bool is_new = i == 0 || touches[i].address != touches[i - 1].address;
    if (is_new) read_first = written = none;
    const GpuAccess access = accesses[touches[i].access].access;
    const bool is_first_of_thread = is_new || touches[i].thread != touches[i - 1].thread;
    if (access != GpuAccess::Store && is_first_of_thread) read_first = touches[i].access;
    if (access != GpuAccess::Load) written = touches[i].access;
    if (read_first == none || written == none) continue;
    truth.is_idempotent = false;
    truth.address = touches[i].address;
    truth.read_line = accesses[read_first].ptx_line;
    truth.write_line = accesses[written].ptx_line;
    break;
  }
  return truth;
}

}  // namespace firebreak::idempotency
