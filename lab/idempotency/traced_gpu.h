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
  Endless,  ///< stopped, because it ran too long, or nobody could go on
};

struct TracedRun {
  RunEnd end = RunEnd::Completed;
  std::vector<softgpu::ObservedAccess> accesses;
};

/// The order in which a block runs to its end before the next one. Nothing stops a launch then that does not
/// end.
inline constexpr std::uint64_t plain_order = ~std::uint64_t{0};

class TracedGpu {
 public:
  /// Maps that many zeroed bytes, with unmapped space behind them; the address is a multiple of 1 MiB.
  std::uint64_t allocate(std::uint64_t size_bytes);
  /// The same, where the last one ends. Before load() alone.
  std::uint64_t allocate_behind(std::uint64_t size_bytes);
  /// Loads a module; its variables get memory, too. Their addresses: variable_addresses().
  Status load(ptx::Module module);
  /// All of its memory. Valid until the next allocate().
  std::span<const access::MemoryRange> memory() const { return ranges_; }
  std::span<const std::uint64_t> variable_addresses() const { return variables_; }

  std::vector<std::byte> snapshot() const;
  void restore(const std::vector<std::byte>& snapshot);
  /// Of one allocation. Empty: there is none.
  std::span<std::byte> bytes(std::uint64_t address, std::uint64_t size_bytes);
  /// Fills all memory with what the seed says, in words of 32 bits of which the mask is left.
  void scramble(std::uint64_t seed, std::uint32_t mask = ~std::uint32_t{0});

  /// Runs until the end, or until `most_accesses` have happened. Blocks, warps and threads take turns as
  /// `order` says: the same number is the same order, as long as the launch finds the same.
  Result<TracedRun> run(const LaunchCase& launch, std::uint64_t most_accesses, std::uint64_t order);

 private:
  std::uint64_t map(std::uint64_t address, std::uint64_t size_bytes);

  softgpu::AddressSpace space_;
  std::vector<access::MemoryRange> ranges_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> buffers_;
  std::vector<std::uint64_t> variables_;
  std::shared_ptr<const softgpu::LoadedModule> module_;
  std::uint64_t next_ = 0x7000'0000'0000;
};

}  // namespace firebreak::idempotency
