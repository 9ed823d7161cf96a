// SPDX-License-Identifier: Apache-2.0
/// One CUDA context: its streams and limits. All contexts of a process share one GPU address space and one
/// fate.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/answer.h"
#include "softgpu/driver/handle_table.h"
#include "softgpu/driver/stream.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu::driver {

struct ContextLimits {
  std::size_t stack_bytes = 1024;
  std::size_t printf_fifo_bytes = std::size_t{1} << 20;
  std::size_t malloc_heap_bytes = std::size_t{8} << 20;
};

struct ContextOptions {
  unsigned int flags = 0;
  unsigned int api_version = 0;
  std::optional<unsigned int> multiprocessors = std::nullopt;  ///< execution affinity; all without one
  CUcontext primary = nullptr;  ///< context whose memory and modules a green context uses
};

/// GPU memory that a context takes: as on an H100 with driver 580 under MPS. One with an affinity of 2 to 8
/// SMs took 48 MiB, and 64 with a reserve for stacks; one without 254 and 519 (nvidia-smi, one kernel run).
std::uint64_t context_memory_bytes(std::optional<unsigned int> multiprocessors, std::size_t stack_bytes);

/// Thread safe.
class Context {
 public:
  Context(std::shared_ptr<const StreamHost> host, std::shared_ptr<SharedGpu> account,
          const ContextOptions& options, std::uint64_t id);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
  /// The context that what is made in this one belongs to: of a green one its device's primary context.
  CUcontext home() { return options_.primary == nullptr ? handle() : options_.primary; }
  unsigned int flags() const { return options_.flags; }
  void set_flags(unsigned int flags) { options_.flags = flags; }
  unsigned int api_version() const { return options_.api_version; }
  std::optional<unsigned int> multiprocessors() const { return options_.multiprocessors; }
  std::uint64_t id() const { return id_; }

  CUstream create_stream(const StreamOptions& options);
  /// The stream behind a handle, also behind the two default streams' handles; null when there is none.
  std::shared_ptr<Stream> find_stream(CUstream handle);
  /// True when there is a stream at that address.
  bool has_stream_at(const void* address) const;
  /// Closes it; what was submitted still runs. False when there is none.
  bool destroy_stream(CUstream handle);

  /// Queues work behind everything that CUDA orders it after.
  CompletionPointer submit(const std::shared_ptr<Stream>& stream, Work work);
  CUresult synchronize();

  CUresult set_limit(CUlimit limit, std::size_t value);
  Answer<std::size_t> limit(CUlimit limit) const;

 private:
  std::shared_ptr<Stream> default_stream();
  std::shared_ptr<Stream> per_thread_stream();
  std::vector<std::shared_ptr<Stream>> all_streams() const;
  /// Called under mutex_, or where nobody else has the context.
  void count_memory(std::uint64_t bytes);

  std::shared_ptr<const StreamHost> host_;
  std::shared_ptr<SharedGpu> account_;  ///< account in which its memory is counted
  ContextOptions options_;
  std::uint64_t id_;
  HandleTable<Stream> streams_;
  mutable std::mutex mutex_;  ///< guards what follows; held while work is queued, so that its order is one
  std::shared_ptr<Stream> default_stream_;
  std::map<std::thread::id, std::shared_ptr<Stream>> per_thread_streams_;
  std::vector<std::shared_ptr<Stream>> ending_streams_;  ///< destroyed, with work that is still done
  ContextLimits limits_;
  std::uint64_t counted_bytes_ = 0;
};

}  // namespace firebreak::softgpu::driver
