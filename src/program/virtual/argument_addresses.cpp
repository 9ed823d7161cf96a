// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/argument_addresses.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

namespace firebreak::virtual_driver {
namespace {

using Give = ArgumentAddresses::Give;

}  // namespace

std::optional<std::span<const std::byte>> arguments_in_one_piece(void** extra) {
  const std::byte* bytes = nullptr;
  std::size_t size_bytes = 0;
  for (; reinterpret_cast<std::uintptr_t>(*extra) != CU_LAUNCH_PARAM_END_AS_INT; extra += 2) {
    const auto name = reinterpret_cast<std::uintptr_t>(*extra);
    if (name == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT) {
      bytes = static_cast<const std::byte*>(extra[1]);
    } else if (name == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT) {
      size_bytes = *static_cast<std::size_t*>(extra[1]);
    } else {
      return std::nullopt;
    }
  }
  return std::span(bytes, bytes == nullptr ? 0 : size_bytes);
}

Give ArgumentAddresses::in_words(const void* bytes, std::size_t size_bytes, Slot slot,
                                 const TakenVariables& taken) {
  Give found = Give::NoAddress;
  for (std::size_t at = 0; at + sizeof(CUdeviceptr) <= size_bytes; at += sizeof(CUdeviceptr)) {
    CUdeviceptr word = 0;
    std::memcpy(&word, static_cast<const char*>(bytes) + at, sizeof word);
    if (!taken.holds(word)) continue;
    found = std::max(found, taken.translate(word, slot) == word ? Give::Address : Give::OldAddress);
  }
  return found;
}

const ArgumentAddresses::Layout* ArgumentAddresses::layout_of(const cuda::Backend& driver,
                                                              const Object& kernel, CUfunction own) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto known = known_.find(&kernel); known != known_.end()) return &known->second;
  }
  // A kernel may stand where a function may, but for this question.
  const auto ask = [&](std::size_t index, Parameter& found) {
    const CUresult result = driver.cuFuncGetParamInfo(own, index, &found.offset_bytes, &found.size_bytes);
    if (result == CUDA_SUCCESS) return result;
    const CUresult of_kernel = driver.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(own), index,
                                                           &found.offset_bytes, &found.size_bytes);
    // A function that has no more of them is no kernel.
    return of_kernel != CUDA_SUCCESS && result == CUDA_ERROR_INVALID_VALUE ? result : of_kernel;
  };
  Layout layout;
  CUresult result = CUDA_SUCCESS;
  while (true) {
    Parameter next;
    result = ask(layout.size(), next);
    if (result != CUDA_SUCCESS) break;
    layout.push_back(next);
  }
  const bool is_whole = !layout.empty() || result == CUDA_ERROR_INVALID_VALUE;
  if (!is_whole) return nullptr;
  const std::unique_lock lock(mutex_);
  return &known_.emplace(&kernel, std::move(layout)).first->second;
}

Give ArgumentAddresses::look(const cuda::Backend& driver, Slot slot, const TakenVariables& taken,
                             const Object* kernel, CUfunction own, void** parameters, void** extra) {
  if (parameters == nullptr) {
    if (extra == nullptr) return Give::NoAddress;
    const auto piece = arguments_in_one_piece(extra);
    return piece ? in_words(piece->data(), piece->size(), slot, taken) : Give::Unknown;
  }
  const Layout* const layout = kernel == nullptr ? nullptr : layout_of(driver, *kernel, own);
  if (layout == nullptr) return Give::Unknown;
  Give found = Give::NoAddress;
  for (std::size_t i = 0; i < layout->size(); ++i)
    found = std::max(found, in_words(parameters[i], (*layout)[i].size_bytes, slot, taken));
  return found;
}

std::optional<std::span<const std::byte>> pack(const ArgumentAddresses::Layout& layout,
                                               const void* const* parameters, std::span<std::byte> room) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const auto& [offset_bytes, size_bytes] = layout[i];
    if (offset_bytes > room.size() || size_bytes > room.size() - offset_bytes) return std::nullopt;
    std::memset(room.data() + end, 0, offset_bytes - std::min(end, offset_bytes));
    std::memcpy(room.data() + offset_bytes, parameters[i], size_bytes);
    end = offset_bytes + size_bytes;
  }
  return room.first(end);
}

}  // namespace firebreak::virtual_driver
