// SPDX-License-Identifier: Apache-2.0
#include "program/guard/preload/ways.h"

#include <algorithm>
#include <array>

#include "program/guard/preload/hooks.h"

namespace firebreak::guard {
namespace {

using abi::CudaParameter;
using abi::CudaParameterKind;
using abi::CudaPurpose;

constexpr auto all = std::to_array<Way>({
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  Way{Way::Kind::GUARD_WAY(symbol, purpose), GUARD_REASON(symbol, purpose)},
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
});

/// Objects that are no memory of the program's and have none.
constexpr auto without_memory = std::to_array<std::string_view>({
    "CUmodule",
    "CUfunction",
    "CUkernel",
    "CUlibrary",
    "CUlinkState",
    "CUevent",
    "CUgraph",
    "CUgraphExec",
    "CUgraphNode",
    "CUtexref",
    "CUsurfref",
    "CUtexObject",
    "CUsurfObject",
    "CUuserObject",
    "CUexternalSemaphore",
    "CUgraphicsResource",
    "CUdevResourceDesc",
});

bool is_without_memory(const CudaParameter& parameter) {
  std::string_view type = parameter.type;
  if (type.ends_with("*")) type.remove_suffix(1);
  return std::ranges::find(without_memory, type) != without_memory.end();
}

bool is_handle(const CudaParameter& parameter) {
  return parameter.kind == CudaParameterKind::Handle || parameter.kind == CudaParameterKind::HandleOut;
}

bool is_address(const CudaParameter& parameter) {
  return parameter.kind == CudaParameterKind::DevicePointer ||
         parameter.kind == CudaParameterKind::DevicePointerOut;
}

/// True when what a function makes or ends may be, or have, memory.
bool is_of_memory(std::span<const CudaParameter> parameters) {
  if (std::ranges::any_of(parameters, is_address)) return true;
  return std::ranges::none_of(parameters, is_handle) ||
         !std::ranges::all_of(parameters, [](const CudaParameter& each) {
           return !is_handle(each) || is_without_memory(each);
         });
}

}  // namespace

std::span<const Way> ways() { return all; }

const Way& way_of(const abi::CudaFunction& function) {
  return all[static_cast<std::size_t>(&function - abi::cuda_functions().data())];
}

bool concerns_guard(const abi::CudaFunction& function) {
  switch (function.purpose) {
    case CudaPurpose::Launches:
    case CudaPurpose::Copies:
    case CudaPurpose::Fills:
    case CudaPurpose::Enqueues:
    case CudaPurpose::Maps:
    case CudaPurpose::Exports:
      return true;
    case CudaPurpose::Creates:
    case CudaPurpose::Destroys:
      return is_of_memory(function.parameters);
    default:
      return false;
  }
}

}  // namespace firebreak::guard
