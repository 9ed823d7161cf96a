// SPDX-License-Identifier: Apache-2.0
#include "guard/preload/replacements.h"

#include <algorithm>
#include <array>

#include "guard/preload/driver_functions.h"
#include "guard/preload/process_guard.h"
#include "guard/preload/replacement_table.h"

namespace firebreak::guard {

std::span<const Replacement> memory_replacements() {
  static const std::array table{
      Replacement{"cuGetProcAddress", "cuGetProcAddress", untyped(&::cuGetProcAddress), 0, 12000},
      Replacement{"cuGetProcAddress_v2", "cuGetProcAddress", untyped(&::cuGetProcAddress_v2), 12000},
      Replacement{"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain",
                  untyped(&::cuDevicePrimaryCtxRetain)},
      Replacement{"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease",
                  untyped(&::cuDevicePrimaryCtxRelease_v2), 11000},
      Replacement{"cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset",
                  untyped(&::cuDevicePrimaryCtxReset_v2), 11000},
      Replacement{"cuCtxCreate_v2", "cuCtxCreate", untyped(&::cuCtxCreate_v2), 3020, 11040},
      Replacement{"cuCtxCreate_v3", "cuCtxCreate", untyped(&::cuCtxCreate_v3), 11040, 12050},
      Replacement{"cuCtxCreate_v4", "cuCtxCreate", untyped(&::cuCtxCreate_v4), 12050},
      Replacement{"cuCtxDestroy_v2", "cuCtxDestroy", untyped(&::cuCtxDestroy_v2), 4000},
      Replacement{"cuCtxEnablePeerAccess", "cuCtxEnablePeerAccess", untyped(&::cuCtxEnablePeerAccess)},
      Replacement{"cuMemAlloc_v2", "cuMemAlloc", untyped(&::cuMemAlloc_v2), 3020},
      Replacement{"cuMemAllocPitch_v2", "cuMemAllocPitch", untyped(&::cuMemAllocPitch_v2), 3020},
      Replacement{"cuMemFree_v2", "cuMemFree", untyped(&::cuMemFree_v2), 3020},
      Replacement{"cuMemAllocManaged", "cuMemAllocManaged", untyped(&::cuMemAllocManaged)},
      Replacement{"cuMemAllocAsync", "cuMemAllocAsync", untyped(&::cuMemAllocAsync), 11020, ever,
                  untyped(&::cuMemAllocAsync_ptsz)},
      Replacement{"cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", untyped(&::cuMemAllocFromPoolAsync),
                  11020, ever, untyped(&::cuMemAllocFromPoolAsync_ptsz)},
      Replacement{"cuMemHostAlloc", "cuMemHostAlloc", untyped(&::cuMemHostAlloc)},
      Replacement{"cuMemAllocHost_v2", "cuMemAllocHost", untyped(&::cuMemAllocHost_v2), 3020},
      Replacement{"cuMemFreeHost", "cuMemFreeHost", untyped(&::cuMemFreeHost)},
      Replacement{"cuMemFreeAsync", "cuMemFreeAsync", untyped(&::cuMemFreeAsync), 11020, ever,
                  untyped(&::cuMemFreeAsync_ptsz)},
      Replacement{"cuIpcGetMemHandle", "cuIpcGetMemHandle", untyped(&::cuIpcGetMemHandle)},
      Replacement{"cuMemGetAddressRange_v2", "cuMemGetAddressRange", untyped(&::cuMemGetAddressRange_v2),
                  3020},
      Replacement{"cuPointerGetAttribute", "cuPointerGetAttribute", untyped(&::cuPointerGetAttribute)},
      Replacement{"cuPointerGetAttributes", "cuPointerGetAttributes", untyped(&::cuPointerGetAttributes)},
      Replacement{"cuMemAddressReserve", "cuMemAddressReserve", untyped(&::cuMemAddressReserve)},
      Replacement{"cuMemAddressFree", "cuMemAddressFree", untyped(&::cuMemAddressFree)},
      Replacement{"cuMemMap", "cuMemMap", untyped(&::cuMemMap)},
      Replacement{"cuMemUnmap", "cuMemUnmap", untyped(&::cuMemUnmap)},
      Replacement{"cuMemSetAccess", "cuMemSetAccess", untyped(&::cuMemSetAccess)},
  };
  return table;
}

std::span<const Replacement> stream_replacements() {
  static const std::array table{
      Replacement{"cuLaunchKernel", "cuLaunchKernel", untyped(&::cuLaunchKernel), 4000, ever,
                  untyped(&::cuLaunchKernel_ptsz)},
      Replacement{"cuLaunchKernelEx", "cuLaunchKernelEx", untyped(&::cuLaunchKernelEx), 11060, ever,
                  untyped(&::cuLaunchKernelEx_ptsz)},
      Replacement{"cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel",
                  untyped(&::cuLaunchCooperativeKernel), 9000, ever,
                  untyped(&::cuLaunchCooperativeKernel_ptsz)},
      Replacement{"cuGraphLaunch", "cuGraphLaunch", untyped(&::cuGraphLaunch), 10000, ever,
                  untyped(&::cuGraphLaunch_ptsz)},
      Replacement{"cuLaunch", "cuLaunch", untyped(&::cuLaunch)},
      Replacement{"cuLaunchGrid", "cuLaunchGrid", untyped(&::cuLaunchGrid)},
      Replacement{"cuLaunchGridAsync", "cuLaunchGridAsync", untyped(&::cuLaunchGridAsync)},
      Replacement{"cuLaunchCooperativeKernelMultiDevice", "cuLaunchCooperativeKernelMultiDevice",
                  untyped(&::cuLaunchCooperativeKernelMultiDevice)},
      Replacement{"cuStreamCreate", "cuStreamCreate", untyped(&::cuStreamCreate)},
      Replacement{"cuStreamCreateWithPriority", "cuStreamCreateWithPriority",
                  untyped(&::cuStreamCreateWithPriority)},
      Replacement{"cuStreamDestroy_v2", "cuStreamDestroy", untyped(&::cuStreamDestroy_v2), 4000},
      Replacement{"cuStreamBeginCapture_v2", "cuStreamBeginCapture", untyped(&::cuStreamBeginCapture_v2),
                  10010, ever, untyped(&::cuStreamBeginCapture_v2_ptsz)},
      Replacement{"cuStreamBeginCaptureToGraph", "cuStreamBeginCaptureToGraph",
                  untyped(&::cuStreamBeginCaptureToGraph), 12030, ever,
                  untyped(&::cuStreamBeginCaptureToGraph_ptsz)},
      Replacement{"cuStreamEndCapture", "cuStreamEndCapture", untyped(&::cuStreamEndCapture), 10000, ever,
                  untyped(&::cuStreamEndCapture_ptsz)},
      Replacement{"cuModuleUnload", "cuModuleUnload", untyped(&::cuModuleUnload)},
      Replacement{"cuLibraryUnload", "cuLibraryUnload", untyped(&::cuLibraryUnload)},
  };
  return table;
}

namespace {

std::array<std::span<const Replacement>, 5> tables() {
  return {memory_replacements(), stream_replacements(), copy_replacements(), fill_replacements(),
          stream_work_replacements()};
}

/// The functions for a thread's own default stream have names with an end of their own.
std::string_view without_per_thread(std::string_view symbol) {
  const bool has_end = symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
  return has_end ? symbol.substr(0, symbol.size() - 5) : symbol;
}

template <class Matches>
const Replacement* find(const Matches& matches, const void* driver_function = nullptr) {
  for (const auto& table : tables()) {
    const auto found = std::ranges::find_if(table, matches);
    if (found == table.end()) continue;
    return ProcessGuard::get(driver_function) == nullptr ? nullptr : &*found;
  }
  return nullptr;
}

}  // namespace

void* replacement_of_symbol(std::string_view name, const void* found) {
  // Who asks for the first of that name among all libraries has found ours.
  const auto is_found = [found](const Replacement& candidate) {
    return candidate.function == found || candidate.per_thread == found;
  };
  for (const auto& table : tables()) {
    if (std::ranges::any_of(table, is_found)) return nullptr;
  }
  const std::string_view symbol = without_per_thread(name);
  const Replacement* const replacement =
      find([symbol](const Replacement& candidate) { return candidate.symbol == symbol; }, found);
  if (replacement == nullptr) return nullptr;
  return symbol == name ? replacement->function : replacement->per_thread;
}

void* replacement_of_entry_point(std::string_view name, int cuda_version, std::uint64_t flags) {
  const Replacement* const replacement = find([&](const Replacement& candidate) {
    return candidate.name == name && cuda_version >= candidate.since && cuda_version < candidate.before;
  });
  if (replacement == nullptr) return nullptr;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  return per_thread && replacement->per_thread != nullptr ? replacement->per_thread : replacement->function;
}

}  // namespace firebreak::guard
