// SPDX-License-Identifier: Apache-2.0
/// Entry points: modules, functions and their attributes, occupancy.
#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "shared/abi/cuda_tables.h"
#include "softgpu/driver/device_attributes.h"
#include "softgpu/driver/entry.h"
#include "softgpu/driver/jit_options.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/ptx_image.h"

using namespace firebreak::softgpu::driver;

namespace {

CUresult load(CUmodule* answer, std::string_view image, const JitOptions& options) {
  return with_context([&](Process& process, Context& context) {
    if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_ptx(image)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    std::string log;
    const auto module = Module::load(process, image, context.home(), log);
    options.write_error_log(log);
    options.write_info_log("");
    if (!module) return module.error();
    *answer = reinterpret_cast<CUmodule>(process.modules().add(*module));
    return CUDA_SUCCESS;
  });
}

template <class Action>
CUresult with_function(CUfunction function, Action&& action) {
  return with_live_process([&](Process& process) {
    const auto found = process.functions().find(function);
    return found ? std::forward<Action>(action)(*found) : CUDA_ERROR_INVALID_HANDLE;
  });
}

Answer<int> function_attribute(const Function& function, CUfunction_attribute attribute) {
  const auto& kernel = function.kernel;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return static_cast<int>(kernel.max_threads_per_block());
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(kernel.static_shared_bytes());
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(kernel.local_bytes());
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return static_cast<int>(std::min<std::uint32_t>(kernel.register_count(), 255));
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return compute_capability_major * 10 + compute_capability_minor;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return function.max_dynamic_shared_bytes.load();
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return function.preferred_carveout.load();
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return 0;
  }
  return refuse(CUDA_ERROR_INVALID_VALUE);
}

CUresult set_function_attribute(Function& function, CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    const int room_bytes =
        shared_bytes_per_block_optin - static_cast<int>(function.kernel.static_shared_bytes());
    if (value < 0 || value > room_bytes) return CUDA_ERROR_INVALID_VALUE;
    function.max_dynamic_shared_bytes.store(value);
    return CUDA_SUCCESS;
  }
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    function.preferred_carveout.store(value);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

int each_function(CUcontext, CUmodule handle, void (*take)(void*, CUfunction), void* data) {
  return with_live_process([&](Process& process) {
           const auto module = process.modules().find(handle);
           if (!module) return CUDA_ERROR_INVALID_HANDLE;
           for (const std::string& name : module->loaded().kernel_names()) {
             if (const auto function = module->function(name)) take(data, *function);
           }
           return CUDA_SUCCESS;
         }) == CUDA_SUCCESS;
}

struct ModuleTable {
  std::uintptr_t size_bytes = sizeof(ModuleTable);
  std::array<std::uintptr_t, firebreak::abi::module_table_each_function - 1> before{};
  firebreak::abi::CudaEachFunction each = &each_function;
};

/// The real one does not look whether there is such a context.
CUresult context_number(CUcontext context, std::uint64_t* number) {
  unsigned long long id = 0;
  const CUresult result = cuCtxGetId(context, &id);
  if (result == CUDA_SUCCESS && number != nullptr) *number = id;
  return result;
}

/// The real one does not look whether there is such a stream.
CUresult stream_object(CUcontext, CUstream stream, void** object, int) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *object = target.get();
    return CUDA_SUCCESS;
  });
}

/// The real one reads what lies at the object's address, whoever's it is.
CUresult stream_word(CUcontext, void* object, std::uint64_t* word) {
  return with_live_process([&](Process& process) {
    if (word == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto contexts = process.contexts().all();
    const bool is_there =
        std::ranges::any_of(contexts, [object](const auto& each) { return each->has_stream_at(object); });
    if (!is_there) return CUDA_ERROR_INVALID_HANDLE;
    *word = reinterpret_cast<std::uintptr_t>(object);
    return CUDA_SUCCESS;
  });
}

struct StreamTable {
  std::uintptr_t size_bytes = sizeof(StreamTable);
  std::array<std::uintptr_t, firebreak::abi::stream_table_context - 1> before{};
  firebreak::abi::CudaContextNumber context = &context_number;
  std::array<std::uintptr_t, firebreak::abi::stream_table_word - firebreak::abi::stream_table_context - 1>
      between_these{};
  firebreak::abi::CudaStreamWord word = &stream_word;
  std::array<std::uintptr_t, firebreak::abi::stream_table_object - firebreak::abi::stream_table_word - 1>
      between{};
  firebreak::abi::CudaStreamObject object = &stream_object;
};

}  // namespace

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int option_count,
                            CUjit_option* options, void** option_values) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto ptx = ptx_of_image(image);
  return ptx ? load(module, *ptx, JitOptions(option_count, options, option_values)) : ptx.error();
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleLoad(CUmodule* module, const char* file_name) {
  if (file_name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(file_name, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto ptx = ptx_of_file(content);
  return ptx ? load(module, *ptx, JitOptions(0, nullptr, nullptr)) : ptx.error();
}

CUresult cuModuleUnload(CUmodule handle) {
  return with_context([&](Process& process, Context& context) {
    if (!process.modules().find(handle)) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = process.synchronize(context);  // its kernels use its variables
    if (const auto module = process.modules().remove(handle)) module->forget_functions();
    return result;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return with_context([&](Process& process, Context&) {
    const auto module = process.modules().find(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = module->function(name);
    if (!found) return found.error();
    *function = *found;
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, std::size_t* size_bytes, CUmodule handle,
                              const char* name) {
  return with_context([&](Process& process, Context&) {
    const auto module = process.modules().find(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto variable = module->loaded().find_variable(name);
    if (!variable) return CUDA_ERROR_NOT_FOUND;
    if (pointer != nullptr) *pointer = variable->address;
    if (size_bytes != nullptr) *size_bytes = variable->size_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return with_function(function,
                       [&](Function& found) { return store(value, function_attribute(found, attribute)); });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return with_function(function,
                       [&](Function& found) { return set_function_attribute(found, attribute, value); });
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return with_function(function, [&](Function&) {
    return config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return with_function(function, [&](Function& found) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = found.module_handle;
    return CUDA_SUCCESS;
  });
}

/// The tables, with the functions that shared/abi/cuda_tables.h names alone.
CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  static const ModuleTable of_modules;
  static const StreamTable of_streams;
  const void* found = nullptr;
  if (id != nullptr && firebreak::abi::is(*id, firebreak::abi::module_table_id)) found = &of_modules;
  if (id != nullptr && firebreak::abi::is(*id, firebreak::abi::stream_table_id)) found = &of_streams;
  if (table != nullptr) *table = found;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return with_function(function, [&](Function& found) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = found.kernel.name().c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset_bytes,
                            std::size_t* size_bytes) {
  return with_function(function, [&](Function& found) {
    const auto parameters = found.kernel.parameters();
    if (offset_bytes == nullptr || index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset_bytes = parameters[index].offset_bytes;
    if (size_bytes != nullptr) *size_bytes = parameters[index].size_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* block_count, CUfunction function, int block_size,
                                                     std::size_t shared_bytes) {
  return with_function(function, [&](Function& found) {
    if (block_count == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *block_count = active_blocks(found, block_size, shared_bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* block_count, CUfunction function,
                                                              int block_size, std::size_t shared_bytes,
                                                              unsigned int flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(block_count, function, block_size, shared_bytes);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size, CUfunction function,
                                          CUoccupancyB2DSize shared_bytes_of, std::size_t shared_bytes,
                                          int block_size_limit) {
  return with_function(function, [&](Function& found) {
    if (min_grid_size == nullptr || block_size == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const BestBlock best = best_block(found, shared_bytes_of, shared_bytes, block_size_limit);
    *min_grid_size = best.blocks_per_multiprocessor * Process::current()->sm_count();
    *block_size = best.threads;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
