// SPDX-License-Identifier: Apache-2.0
/// A software GPU for one thread whose launches are traced, torn and done again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "kernels/access/launch.h"
#include "softgpu/interpreter/interpreter.h"

namespace firebreak::idempotency {

/// One launch of one kernel.
struct LaunchCase {
  std::string kernel;
  softgpu::Dimensions grid;
  softgpu::Dimensions block;
  std::vector<std::byte> parameters;
};

enum class RunEnd : std::uint8_t {
  Completed,
  Torn,  ///< after as many accesses as asked for
  Faulted,
  Endless,  ///< stopped, because it ran too long
};

struct TracedRun {
  RunEnd end = RunEnd::Completed;
  std::vector<softgpu::ObservedAccess> accesses;
};

class TracedGpu {
 public:
  /// Maps that many zeroed bytes, with unmapped space behind them; the address is a multiple of 1 MiB.
  std::uint64_t allocate(std::uint64_t size_bytes);
  /// Loads a module; its variables get memory, too. Their addresses: variable_addresses().
  Status load(ptx::Module module);
  /// All of its memory. Valid until the next allocate().
  std::span<const access::MemoryRange> memory() const { return ranges_; }
  std::span<const std::uint64_t> variable_addresses() const { return variables_; }

  std::vector<std::byte> snapshot() const;
  void restore(const std::vector<std::byte>& snapshot);
  /// Of one allocation. Empty: there is none.
  std::span<std::byte> bytes(std::uint64_t address, std::uint64_t size_bytes);
  /// Fills all memory with what the seed says.
  void scramble(std::uint64_t seed);

  /// Runs until the end, or until `most_accesses` have happened. An empty order is the usual one.
  Result<TracedRun> run(const LaunchCase& launch, std::uint64_t most_accesses,
                        const std::vector<std::uint32_t>& block_order = {});

 private:
  softgpu::AddressSpace space_;
  std::vector<access::MemoryRange> ranges_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> buffers_;
  std::vector<std::uint64_t> variables_;
  std::shared_ptr<const softgpu::LoadedModule> module_;
  std::uint64_t next_ = 0x7000'0000'0000;
};

}  // namespace firebreak::idempotency
