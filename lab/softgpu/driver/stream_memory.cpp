// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/stream_memory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "softgpu/driver/memory_pieces.h"

namespace firebreak::softgpu::driver {

namespace {

constexpr unsigned int comparison_mask = 0x3;

std::uint64_t load_word(std::byte* word, std::uint32_t size_bytes) {
  if (size_bytes == 8) return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)).load();
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(word)).load();
}

void store_word(std::byte* word, std::uint32_t size_bytes, std::uint64_t value) {
  if (size_bytes == 8) {
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)).store(value);
  } else {
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(word)).store(static_cast<std::uint32_t>(value));
  }
}

bool satisfied(const ValueOperation& operation, std::uint64_t memory) {
  const std::uint64_t all_ones = operation.size_bytes == 8 ? ~std::uint64_t{0} : 0xffffffffu;
  switch (operation.flags & comparison_mask) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      // A cyclic comparison, as the hardware's: the counter may wrap.
      if (operation.size_bytes == 8) return static_cast<std::int64_t>(memory - operation.value) >= 0;
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(memory - operation.value)) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return memory == operation.value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (memory & operation.value) != 0;
    default:
      return (~(memory | operation.value) & all_ones) != 0;
  }
}

std::optional<MemoryPiece> find_word(Process& process, const ValueOperation& operation, GpuAccess access) {
  return find_piece(process.space(), {operation.address, true, nullptr}, 0, operation.size_bytes, access,
                    Engine::Host);
}

WorkOutcome host_engine_fault(const ValueOperation& operation, GpuAccess access) {
  return WorkFault{FaultCause::HostEngine, access, operation.address};
}

WorkOutcome wait_for_value(Process& process, const ValueOperation& operation) {
  std::chrono::microseconds pause(5);
  while (true) {
    if (process.control().attention.load() != 0 && process.control().should_stop()) return WorkStopped{};
    const auto word = find_word(process, operation, GpuAccess::Load);
    if (!word) return host_engine_fault(operation, GpuAccess::Load);
    if (satisfied(operation, load_word(word->bytes.data(), operation.size_bytes))) return WorkDone{};
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(200));
  }
}

CUresult check(Process& process, const ValueOperation& operation, unsigned int known_flags) {
  const bool valid = (operation.flags & ~known_flags) == 0 && operation.address % operation.size_bytes == 0 &&
                     is_mapped(process.space(), operation.address);
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult submit_wait_value(Process& process, Context& context, const std::shared_ptr<Stream>& stream,
                           const ValueOperation& operation) {
  constexpr unsigned int known_flags = comparison_mask | CU_STREAM_WAIT_VALUE_FLUSH;
  if (const CUresult checked = check(process, operation, known_flags); checked != CUDA_SUCCESS)
    return checked;
  Work work;
  work.on_gpu = false;  // a waiting channel does not run: nobody is harmed when its process ends
  work.is_lost_with_process = true;
  work.run = [&process, operation] { return wait_for_value(process, operation); };
  context.submit(stream, std::move(work));
  return CUDA_SUCCESS;
}

CUresult submit_write_value(Process& process, Context& context, const std::shared_ptr<Stream>& stream,
                            const ValueOperation& operation) {
  constexpr unsigned int known_flags = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
  if (const CUresult checked = check(process, operation, known_flags); checked != CUDA_SUCCESS)
    return checked;
  Work work;
  const RmClient::Ticket ticket =
      process.queue_word(operation.address, operation.value, operation.size_bytes);
  work.run = [&process, operation, ticket]() -> WorkOutcome {
    const auto word = find_word(process, operation, GpuAccess::Store);
    if (!word) return host_engine_fault(operation, GpuAccess::Store);
    store_word(word->bytes.data(), operation.size_bytes, operation.value);
    process.finish_word(ticket);
    return WorkDone{};
  };
  context.submit(stream, std::move(work));
  return CUDA_SUCCESS;
}

}  // namespace firebreak::softgpu::driver
