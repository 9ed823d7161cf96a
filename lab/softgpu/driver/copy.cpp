// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/copy.h"

#include <array>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

namespace firebreak::softgpu::driver {

namespace {

struct ResolvedSide {
  MemorySide side;
  bool pageable = false;  ///< plain host memory: the GPU reads and writes it through a staging buffer
};

std::uint64_t span_bytes(const CopyShape& shape, std::uint64_t pitch_bytes) {
  return (shape.height - 1) * pitch_bytes + shape.width_bytes;
}

bool is_gpu_address(Process& process, std::uint64_t address) {
  return is_mapped(process.space(), address) || process.virtual_memory().is_reserved(address) ||
         (address >= AddressRanges::arena_begin && address < AddressRanges::arena_end);
}

Answer<ResolvedSide> resolve(Process& process, const CopyPointer& pointer, std::uint64_t size_bytes) {
  if (pointer.address == 0) return refuse(CUDA_ERROR_INVALID_VALUE);
  const bool mapped = is_mapped(process.space(), pointer.address);
  const bool on_gpu = pointer.role == PointerRole::Gpu ||
                      (pointer.role == PointerRole::Either && is_gpu_address(process, pointer.address)) ||
                      mapped;
  if (!on_gpu) return ResolvedSide{{pointer.address, false, nullptr}, true};
  if (is_accessible(process.space(), pointer.address, size_bytes)) {
    return ResolvedSide{{pointer.address, true, nullptr}, false};
  }
  // A host range that was registered in part is still host memory.
  if (pointer.role == PointerRole::Host) return ResolvedSide{{pointer.address, false, nullptr}, true};
  return refuse(CUDA_ERROR_INVALID_VALUE);
}

/// Reads pageable memory now: the program may change it as soon as the call returns.
void stage(ResolvedSide& source, std::uint64_t size_bytes) {
  auto buffer = std::make_shared<std::vector<std::byte>>(size_bytes);
  std::memcpy(buffer->data(), reinterpret_cast<const void*>(source.side.address), size_bytes);
  source.side.address = reinterpret_cast<std::uint64_t>(buffer->data());
  source.side.staging = std::move(buffer);
}

MemorySide row_of(MemorySide side, std::uint64_t row, std::uint64_t pitch_bytes) {
  side.address += row * pitch_bytes;
  return side;
}

CUresult submit(Process& process, Context& context, const std::shared_ptr<Stream>& stream, Work work,
                bool wait) {
  const CompletionPointer completion = context.submit(stream, std::move(work));
  return wait ? process.completions().wait(*completion) : CUDA_SUCCESS;
}

Work writing(std::function<WorkOutcome()> action) {
  Work work;
  work.is_lost_with_process = true;
  work.run = std::move(action);
  return work;
}

Work work_of(Process& process, const CopyShape& shape, const MemorySide& from, const MemorySide& to) {
  return writing([&process, shape, from, to]() -> WorkOutcome {
    for (std::uint64_t row = 0; row < shape.height; ++row) {
      const WorkOutcome outcome =
          copy_bytes(process.space(), process.control(), row_of(to, row, shape.destination_pitch_bytes),
                     row_of(from, row, shape.source_pitch_bytes), shape.width_bytes);
      if (!std::holds_alternative<WorkDone>(outcome)) return outcome;
    }
    return WorkDone{};
  });
}

}  // namespace

Answer<Work> work_of_copy(Process& process, const CopyRequest& request) {
  const CopyShape shape = request.shape;
  if (shape.width_bytes == 0 || shape.height == 0) return Work{};
  const auto source = resolve(process, request.source, span_bytes(shape, shape.source_pitch_bytes));
  const auto destination =
      resolve(process, request.destination, span_bytes(shape, shape.destination_pitch_bytes));
  if (!source) return refuse(source.error());
  if (!destination) return refuse(destination.error());
  return work_of(process, shape, source->side, destination->side);
}

CUresult submit_copy(Process& process, Context& context, const std::shared_ptr<Stream>& stream,
                     const CopyRequest& request) {
  const CopyShape shape = request.shape;
  if (shape.width_bytes == 0 || shape.height == 0) return CUDA_SUCCESS;
  const std::uint64_t source_bytes = span_bytes(shape, shape.source_pitch_bytes);
  auto source = resolve(process, request.source, source_bytes);
  auto destination = resolve(process, request.destination, span_bytes(shape, shape.destination_pitch_bytes));
  if (!source) return source.error();
  if (!destination) return destination.error();
  const bool wait = request.wait || destination->pageable;
  if (source->pageable && !wait) stage(*source, source_bytes);
  return submit(process, context, stream, work_of(process, shape, source->side, destination->side), wait);
}

Answer<Work> work_of_fill(Process& process, const FillRequest& request) {
  if (request.width == 0 || request.height == 0) return Work{};
  const std::uint64_t row_bytes = request.width * request.pattern_bytes;
  const std::uint64_t all_bytes = (request.height - 1) * request.pitch_bytes + row_bytes;
  if (request.address % request.pattern_bytes != 0 ||
      !is_accessible(process.space(), request.address, all_bytes)) {
    return refuse(CUDA_ERROR_INVALID_VALUE);
  }
  return writing([&process, request, row_bytes]() -> WorkOutcome {
    std::array<std::byte, sizeof(request.pattern)> pattern;
    std::memcpy(pattern.data(), &request.pattern, sizeof(request.pattern));
    for (std::uint64_t row = 0; row < request.height; ++row) {
      const WorkOutcome outcome =
          fill_bytes(process.space(), process.control(), request.address + row * request.pitch_bytes,
                     std::span(pattern).first(request.pattern_bytes), row_bytes);
      if (!std::holds_alternative<WorkDone>(outcome)) return outcome;
    }
    return WorkDone{};
  });
}

CUresult submit_fill(Process& process, Context& context, const std::shared_ptr<Stream>& stream,
                     const FillRequest& request) {
  if (request.width == 0 || request.height == 0) return CUDA_SUCCESS;
  auto work = work_of_fill(process, request);
  if (!work) return work.error();
  return submit(process, context, stream, std::move(*work), request.wait);
}

}  // namespace firebreak::softgpu::driver
