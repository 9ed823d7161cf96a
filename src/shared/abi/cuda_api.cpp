// SPDX-License-Identifier: Apache-2.0
#include "shared/abi/cuda_api.h"

#include <algorithm>
#include <array>

#include "shared/abi/cuda_api_rows.h"

namespace firebreak::abi {
namespace {

// A tuple of the row, with the names as text.
#define CUDA_ONE_ROW_PARAMETER(kind, type, name, ...) \
  CudaParameter { CudaParameterKind::kind, #type, #name, #__VA_ARGS__ }

#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...)    \
  constexpr auto parameters_of_##symbol = std::to_array<CudaParameter>( \
      {CudaParameter{} __VA_OPT__(, ) CUDA_EACH(CUDA_ONE_ROW_PARAMETER, __VA_ARGS__)});
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION

constexpr std::string_view per_thread_symbol(CudaPerThread kind, std::string_view ptsz,
                                             std::string_view ptds) {
  switch (kind) {
    case CudaPerThread::ptsz:
      return ptsz;
    case CudaPerThread::ptds:
      return ptds;
    case CudaPerThread::same:
      break;
  }
  return {};
}

constexpr auto functions = std::to_array<CudaFunction>({
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...)              \
  CudaFunction{#symbol,                                                           \
               #name,                                                             \
               since,                                                             \
               CudaPerThread::per_thread,                                         \
               CudaPurpose::purpose,                                              \
               std::span<const CudaParameter>(parameters_of_##symbol).subspan(1), \
               per_thread_symbol(CudaPerThread::per_thread, #symbol "_ptsz", #symbol "_ptds")},
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
});

}  // namespace

std::span<const CudaFunction> cuda_functions() { return functions; }

const CudaFunction* cuda_function_of_symbol(std::string_view symbol) {
  const auto found = std::ranges::find(functions, symbol, &CudaFunction::symbol);
  return found == functions.end() ? nullptr : &*found;
}

const CudaFunction* cuda_function_at(std::string_view name, int cuda_version) {
  const CudaFunction* newest = nullptr;
  for (const CudaFunction& function : functions) {
    if (function.name != name || function.since > cuda_version) continue;
    if (newest == nullptr || function.since > newest->since) newest = &function;
  }
  return newest;
}

bool is_cuda_function_name(std::string_view name) {
  return std::ranges::find(functions, name, &CudaFunction::name) != functions.end();
}

}  // namespace firebreak::abi
