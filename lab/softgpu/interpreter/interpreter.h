// SPDX-License-Identifier: Apache-2.0
/// Runs PTX kernels on the CPU: a loaded module, a launch, and the fault or stop that ended it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ground/base/result.h"
#include "kernels/ptx/ir.h"
#include "softgpu/interpreter/address_space.h"
#include "softgpu/interpreter/gpu_fault.h"

namespace firebreak::softgpu {

/// One parameter of an entry function: where it lies in the packed parameter block.
struct KernelParameter {
  std::uint32_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
};

/// A kernel, decoded for execution. Immutable; shared by threads.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const std::string& name() const = 0;
  virtual std::span<const KernelParameter> parameters() const = 0;
  virtual std::uint32_t static_shared_bytes() const = 0;
  virtual std::uint32_t local_bytes() const = 0;
  virtual std::uint32_t register_count() const = 0;
  virtual std::uint32_t max_threads_per_block() const = 0;
  /// This tells whether it, or what it calls, has an instruction that may store to global memory.
  virtual bool writes_memory() const = 0;
};

/// A PTX module whose .global and .const variables have addresses. Immutable after creation; shared by
/// threads.
class LoadedModule {
 public:
  /// This decides where module variables go: it returns the GPU address of `size` zeroed, mapped bytes, or an
  /// error.
  using AllocateGlobal =
      std::function<Result<std::uint64_t>(std::uint64_t size_bytes, std::uint64_t alignment_bytes)>;
  /// Copies initial values to a GPU address that AllocateGlobal returned.
  using WriteGlobal = std::function<Status(std::uint64_t address, std::span<const std::byte> bytes)>;

  /// Decodes every function. InvalidArgument names the instruction (with its line) that is not supported.
  static Result<std::shared_ptr<const LoadedModule>> load(ptx::Module module, const AllocateGlobal& allocate,
                                                          const WriteGlobal& write);
  virtual ~LoadedModule() = default;
  /// Null when there is no such entry function.
  virtual const Kernel* find_kernel(std::string_view name) const = 0;
  virtual std::vector<std::string> kernel_names() const = 0;
  struct Variable {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
  };
  virtual std::optional<Variable> find_variable(std::string_view name) const = 0;
};

struct Dimensions {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// One access of one thread to global memory.
struct ObservedAccess {
  std::uint64_t address = 0;
  std::uint32_t size_bytes = 0;
  GpuAccess access = GpuAccess::None;
  std::uint32_t ptx_line = 0;
  std::uint64_t thread =
      0;  ///< counts from 0: the block's place in the grid times its threads, plus the thread's
};

/// Told of a launch's accesses to global memory, in the order in which they happen. For checks and tests.
class AccessObserver {
 public:
  virtual ~AccessObserver() = default;
  /// The observer is asked before the access happens. With false it does not happen, and the kernel stops
  /// there, torn.
  virtual bool observe(const ObservedAccess& access) = 0;
};

/// Any order that PTX allows, by a seed: blocks, warps and threads of a warp take turns, and may do so at
/// each instruction. For checks: it is several times slower.
struct Interleaving {
  std::uint64_t seed = 0;
  std::uint64_t most_steps = 20'000'000;  ///< instructions of warps; the kernel is stopped after them
};

struct Launch {
  std::shared_ptr<const LoadedModule> module;  ///< kept alive for the launch
  const Kernel* kernel = nullptr;              ///< of `module`
  Dimensions grid;
  Dimensions block;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;  ///< packed as `Kernel::parameters` says
  std::uint64_t stack_limit_bytes =
      1024;                            ///< local memory for call frames per thread, beyond the entry's own
  AccessObserver* observer = nullptr;  ///< null: nobody looks; outlives the launch
  /// Nothing: a block runs to its end before the next one, x first, then y, z.
  std::optional<Interleaving> interleaving;
};

/// Polled by running kernels, at least once every few thousand instructions of a thread.
class ExecutionControl {
 public:
  virtual ~ExecutionControl() = default;
  /// Called when `attention` is non-zero. Blocks while the GPU is stalled; true: stop the kernel where it is.
  virtual bool should_stop() = 0;
  std::atomic<std::uint32_t> attention{0};
};

/// May keep single blocks of a launch from running, which an ExecutionControl does with all of them. A block
/// is named by its place in the grid.
class BlockGate {
 public:
  virtual ~BlockGate() = default;
  /// Asked before a block begins, and every few thousand instructions of a thread while it runs.
  virtual bool is_halted(std::uint64_t block) = 0;
  /// Blocks while it is. False: the kernel is to stop where it is.
  virtual bool wait(std::uint64_t block) = 0;
};

struct Completed {
  std::uint64_t instructions = 0;  ///< PTX instructions executed, summed over threads
};
struct Stopped {
};  ///< The ExecutionControl or the AccessObserver stopped it, or an interleaving has used up its steps.
using LaunchOutcome = std::variant<Completed, Stopped, GpuFault>;

/// Runs one launch to its end on the calling thread. A fault stops the kernel where it is: what other threads
/// of the grid have written by then stays written. Blocks that are halted when it is their turn run after the
/// others; one that is halted in its middle keeps those behind it waiting. `gate` null: none is ever halted;
/// with an interleaving nobody asks it.
LaunchOutcome run_launch(const Launch& launch, const AddressSpace& memory, ExecutionControl& control,
                         BlockGate* gate = nullptr);

}  // namespace firebreak::softgpu
