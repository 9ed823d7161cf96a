// SPDX-License-Identifier: Apache-2.0
#include "program/record/front.h"

#include <atomic>
#include <memory>
#include <type_traits>

#include "ground/os/memory.h"
#include "ground/os/self.h"
#include "program/record/recorder.h"
#include "shared/abi/cuda_api.h"

namespace firebreak::record {
namespace {

// Never destroyed: other threads may use the driver until the process's very end.
constinit std::atomic<Recorder*> recorder{nullptr};
const cuda::Backend* driver = nullptr;  // set before any function below is given out

Recorder* active() { return recorder.load(std::memory_order_acquire); }

void stop() { recorder.store(nullptr); }

template <class Handle, class Load>
CUresult load(Handle* handle, const void* image, const Load& load_one) {
  // The bytes may be gone after the call.
  auto kept = active() == nullptr || image == nullptr ? nullptr : std::make_shared<LoadedImage>(image);
  const CUresult result = load_one();
  if (result == CUDA_SUCCESS && kept != nullptr)
    active()->loaded(*handle, std::move(kept), std::is_same_v<Handle, CUlibrary>);
  return result;
}

template <class Handle, class Load>
CUresult load_file(Handle* handle, const char* path, const Load& load_one) {
  const CUresult result = load_one();
  if (result != CUDA_SUCCESS || active() == nullptr) return result;
  auto content = os::content_at(path);
  if (content)
    active()->loaded(*handle, std::make_shared<LoadedImage>(std::move(*content)),
                     std::is_same_v<Handle, CUlibrary>);
  return result;
}

void note(const RecordedCall& launch) {
  if (Recorder* const wanted = active()) wanted->launched(launch);
}

}  // namespace

// By the names of the driver's functions.
namespace functions {

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return load_file(module, path, [&] { return driver->cuModuleLoad(module, path); });
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load(module, image, [&] { return driver->cuModuleLoadData(module, image); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count, CUjit_option* options,
                            void** values) {
  return load(module, image,
              [&] { return driver->cuModuleLoadDataEx(module, image, count, options, values); });
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load(module, image, [&] { return driver->cuModuleLoadFatBinary(module, image); });
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options, void** values,
                           unsigned int count, CUlibraryOption* library_options, void** library_values,
                           unsigned int library_count) {
  return load(library, image, [&] {
    return driver->cuLibraryLoadData(library, image, options, values, count, library_options, library_values,
                                     library_count);
  });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* options, void** values,
                               unsigned int count, CUlibraryOption* library_options, void** library_values,
                               unsigned int library_count) {
  return load_file(library, path, [&] {
    return driver->cuLibraryLoadFromFile(library, path, options, values, count, library_options,
                                         library_values, library_count);
  });
}

CUresult cuModuleUnload(CUmodule module) {
  if (Recorder* const wanted = active()) wanted->unloaded(module);
  return driver->cuModuleUnload(module);
}

CUresult cuLibraryUnload(CUlibrary library) {
  if (Recorder* const wanted = active()) wanted->unloaded(library);
  return driver->cuLibraryUnload(library);
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const CUresult result = driver->cuModuleGetFunction(function, module, name);
  if (result == CUDA_SUCCESS && active() != nullptr) active()->found(*function, module, name);
  return result;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  const CUresult result = driver->cuLibraryGetKernel(kernel, library, name);
  if (result == CUDA_SUCCESS && active() != nullptr) active()->found(*kernel, library, name);
  return result;
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  const CUresult result = driver->cuLibraryGetModule(module, library);
  if (result == CUDA_SUCCESS && active() != nullptr) active()->module_found(*module, library);
  return result;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  const CUresult result = driver->cuKernelGetFunction(function, kernel);
  if (result == CUDA_SUCCESS && active() != nullptr) active()->function_found(*function, kernel);
  return result;
}

// Of two symbols each: the function's own, and the one for callers whose default stream is their thread's
// own.

template <auto launch>
CUresult launch_kernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                       unsigned int block_x, unsigned int block_y, unsigned int block_z,
                       unsigned int shared_bytes, CUstream stream, void** parameters, void** extra) {
  note({function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, parameters, extra});
  return (driver->*launch)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                           parameters, extra);
}
constexpr auto cuLaunchKernel = &launch_kernel<&cuda::Backend::cuLaunchKernel>;
constexpr auto cuLaunchKernel_ptsz = &launch_kernel<&cuda::Backend::cuLaunchKernel_ptsz>;

template <auto launch>
CUresult launch_cooperative(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                            void** parameters) {
  note({function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, parameters, nullptr});
  return (driver->*launch)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                           parameters);
}
constexpr auto cuLaunchCooperativeKernel = &launch_cooperative<&cuda::Backend::cuLaunchCooperativeKernel>;
constexpr auto cuLaunchCooperativeKernel_ptsz =
    &launch_cooperative<&cuda::Backend::cuLaunchCooperativeKernel_ptsz>;

template <auto launch>
CUresult launch_configured(const CUlaunchConfig* config, CUfunction function, void** parameters,
                           void** extra) {
  if (config != nullptr)
    note({function,
          {config->gridDimX, config->gridDimY, config->gridDimZ},
          {config->blockDimX, config->blockDimY, config->blockDimZ},
          config->sharedMemBytes,
          parameters,
          extra});
  return (driver->*launch)(config, function, parameters, extra);
}
constexpr auto cuLaunchKernelEx = &launch_configured<&cuda::Backend::cuLaunchKernelEx>;
constexpr auto cuLaunchKernelEx_ptsz = &launch_configured<&cuda::Backend::cuLaunchKernelEx_ptsz>;

template <auto launch>
CUresult launch_graph(CUgraphExec graph, CUstream stream) {
  if (Recorder* const wanted = active()) wanted->launched_graph();
  return (driver->*launch)(graph, stream);
}
constexpr auto cuGraphLaunch = &launch_graph<&cuda::Backend::cuGraphLaunch>;
constexpr auto cuGraphLaunch_ptsz = &launch_graph<&cuda::Backend::cuGraphLaunch_ptsz>;

CUresult answered(CUresult result, const char* name, void** function, int cuda_version, std::uint64_t flags) {
  if (result != CUDA_SUCCESS || name == nullptr || function == nullptr || *function == nullptr) return result;
  void* const ours = recording_entry_point(name, cuda_version, flags);
  if (ours != nullptr) *function = ours;
  return result;
}

CUresult cuGetProcAddress(const char* name, void** function, int cuda_version, std::uint64_t flags) {
  return answered(driver->cuGetProcAddress(name, function, cuda_version, flags), name, function, cuda_version,
                  flags);
}

CUresult cuGetProcAddress_v2(const char* name, void** function, int cuda_version, std::uint64_t flags,
                             CUdriverProcAddressQueryResult* found) {
  return answered(driver->cuGetProcAddress_v2(name, function, cuda_version, flags, found), name, function,
                  cuda_version, flags);
}

}  // namespace functions

// All of the above.
#define RECORD_FUNCTIONS(row)                                                                               \
  row(cuModuleLoad) row(cuModuleLoadData) row(cuModuleLoadDataEx) row(cuModuleLoadFatBinary)                \
      row(cuLibraryLoadData) row(cuLibraryLoadFromFile) row(cuModuleUnload) row(cuLibraryUnload)            \
          row(cuModuleGetFunction) row(cuLibraryGetKernel) row(cuLibraryGetModule) row(cuKernelGetFunction) \
              row(cuLaunchKernel) row(cuLaunchKernel_ptsz) row(cuLaunchCooperativeKernel)                   \
                  row(cuLaunchCooperativeKernel_ptsz) row(cuLaunchKernelEx) row(cuLaunchKernelEx_ptsz)      \
                      row(cuGraphLaunch) row(cuGraphLaunch_ptsz) row(cuGetProcAddress)                      \
                          row(cuGetProcAddress_v2)

Result<cuda::Backend> start_recording(const cuda::Backend& own_driver, const std::string& folder) {
  auto made = LaunchFolder::create(folder);
  if (!made) return propagate(made);
  driver = new cuda::Backend(own_driver);
  recorder.store(new Recorder(own_driver, std::move(*made)), std::memory_order_release);
  os::run_in_children(&stop);
  cuda::Backend in_front = own_driver;
#define RECORD_SET(symbol) \
  if (cuda::is_there(own_driver.symbol)) in_front.symbol = functions::symbol;
  RECORD_FUNCTIONS(RECORD_SET)
#undef RECORD_SET
  return in_front;
}

void* recording_symbol(std::string_view symbol) {
  if (active() == nullptr) return nullptr;
#define RECORD_FIND(each) \
  if (symbol == #each) return reinterpret_cast<void*>(functions::each);
  RECORD_FUNCTIONS(RECORD_FIND)
#undef RECORD_FIND
  return nullptr;
}

void* recording_entry_point(std::string_view name, int cuda_version, std::uint64_t flags) {
  const abi::CudaFunction* const function =
      active() == nullptr ? nullptr : abi::cuda_function_at(name, cuda_version);
  if (function == nullptr) return nullptr;
  const bool is_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  if (is_per_thread && !function->per_thread_symbol.empty())
    return recording_symbol(function->per_thread_symbol);
  return recording_symbol(function->symbol);
}

}  // namespace firebreak::record
