// SPDX-License-Identifier: Apache-2.0
/// The process's GPU address space as UVM keeps it: what the driver maps, the managed ranges that the program
/// makes by mmap() of its UVM descriptor (softgpu/machine/uvm_ring.h), and external ranges.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "softgpu/interpreter/address_space.h"
#include "softgpu/machine/uvm_ring.h"

namespace firebreak::softgpu::driver {

/// Thread safe. A GPU access to a managed range that has no memory there gets 64 KiB of zeroed memory after
/// the delays of the fault table, and UVM tells of it; an access to a sparse range needs none. Linux tells
/// nobody of munmap(): that a range is gone is noticed at the next fault, or when the driver maps something.
class UvmSpace final : public FaultHandler {
 public:
  /// `speed` divides the delays. `asks_cpu`: only where the CPU may write is a fault serviced
  /// (environment::uvm_asks_cpu).
  UvmSpace(UvmDescriptor descriptor, double speed, bool asks_cpu = false);

  AddressSpace& space() { return space_; }
  UvmDescriptor& descriptor() { return descriptor_; }

  /// Maps as AddressSpace::map does; also false where a managed or an external range is in the way.
  bool map(Translation range);
  bool unmap(std::uint64_t begin, std::uint64_t size_bytes);

  FaultAnswer handle(const PageFault& fault) override;

 private:
  /// True when the page tables allow the access by now.
  bool is_allowed(const PageFault& fault) const;
  /// False: the address is in no managed range.
  bool populate(std::uint64_t address, const std::vector<AddressSpan>& managed);
  /// Takes back memory that lies in no managed range any more.
  void forget_stale(const std::vector<AddressSpan>& managed);
  void replace_by_parts(const Translation& piece, const std::vector<AddressSpan>& managed);

  UvmDescriptor descriptor_;
  double speed_;
  bool asks_cpu_;
  AddressSpace space_;
  std::mutex mutex_;  ///< guards what follows; one fault at a time is serviced. Before the address space's
  std::map<std::uint64_t, Translation> populated_;  // translations by begin
};

}  // namespace firebreak::softgpu::driver
