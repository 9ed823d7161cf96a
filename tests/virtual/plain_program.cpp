// SPDX-License-Identifier: Apache-2.0
/// A program that knows nothing of Firebreak: plain CUDA, one command a message on descriptor 3, one answer
/// "RESULT [VALUE]" each. Everything that it makes, it makes once, at its start.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "ground/os/memory.h"
#include "ground/os/socket.h"
#include "shared/abi/cuda_driver_functions.h"
#include "shared/abi/cuda_tables.h"
#include "tests/virtual/corner_program.h"
#include "tests/virtual/event_program.h"
#include "tests/virtual/graph_program.h"
#include "tests/virtual/mapping_program.h"
#include "tests/virtual/plain_code.h"
#include "tests/virtual/random_program.h"
#include "tests/virtual/redo_program.h"

namespace {

using namespace firebreak;
using namespace firebreak::test;

constexpr std::uint32_t word_count = 256;
constexpr std::size_t large_bytes = std::size_t{5} << 20;
constexpr std::size_t many_bytes = std::size_t{2} << 20;

struct Answer {
  CUresult result = CUDA_SUCCESS;
  unsigned long long value = 0;
};

bool tells_of_its_end = false;

/// Between what was asked for to happen at the end since cuInit, and what was asked for before.
void tell_of_end() {
  if (!tells_of_its_end) return;
  for (const char* const text : {"0 1", "0 2"}) {
    if (::write(3, text, 3) != 3) ::_exit(1);
    ::usleep(300'000);
  }
}

class Program {
 public:
  explicit Program(void* library) : library_(library) {}

  Answer run(const std::string& verb, std::istream& words) {
    if (verb == "init") return {init(ptx)};
    if (verb == "init_without_variables") return {init(without_variables())};
    if (verb == "init_fat_binary") return {init(fat_binary(ptx))};
    if (verb == "init_library") return {init(fat_binary(ptx), true)};
    if (verb == "init_library_of_two") return {init(fat_binary(ptx, {70, 80}), true)};
    if (verb == "init_allocating") return {init(fat_binary(std::string(ptx) + allocating))};
    if (verb == "init_storing") return {init(std::string(ptx) + storing)};
    if (verb == "init_storing_fat_binary") return {init(fat_binary(std::string(ptx) + storing))};
    if (verb == "store_address") return {launch("store_address", words_)};
    if (verb == "use_stored") return {launch("use_stored", words_)};
    if (verb == "create_context") return {create_context()};
    if (verb == "reset_primary") return reset_primary();
    if (verb == "ask_version") return {ask_version()};
    if (verb == "retain_primary") return {retain_primary()};
    if (verb == "load_more") return {load_more()};
    if (verb == "blocks") return blocks(words);
    if (verb == "use_more") return {use_more()};
    if (verb == "use_table") return {use_table()};
    if (verb == "ask_of_streams") return {ask_of_streams()};
    if (verb == "prepare_launches") return {prepare_launches(words)};
    if (verb == "take_steps") return {take_steps()};
    if (verb == "steps_on_host") return read_word(steps_);
    if (verb == "set_steps") return {write_word(steps_, words)};
    if (verb == "copy_address") return {copy_address(words)};
    if (verb == "take") return take();
    if (verb == "set_factor") return {write_word(factor_ + 4, words)};
    if (verb == "set_factor_2d") return {set_factor_2d(words)};
    if (verb == "factor") return factor();
    if (verb == "factor_on_host") return read_word(factor_ + 4);
    if (verb == "is_where_it_was") return is_where_it_was();
    if (verb == "give_address") return {give_address()};
    if (verb == "give_address_in_a_buffer") return {give_address_in_a_buffer()};
    if (verb == "step") return {step()};
    if (verb == "enqueue") return {launch("step", words_)};
    if (verb == "wait") return {get<PFN_cuStreamSynchronize>("cuStreamSynchronize")(stream_)};
    if (verb == "digest") return digest();
    if (verb == "steps") return steps();
    if (verb == "spin") return {launch("spin", spare_words_)};
    if (verb == "spin_on_host") return {launch("spin", reinterpret_cast<CUdeviceptr>(host_))};
    if (verb == "release") return {release()};
    if (verb == "release_by_copy") return {release_by_copy()};
    if (verb == "fork_and_init") return fork_and_init();
    if (verb == "become_nobody") return {::setuid(65534) == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED};
    if (verb == "change_root") return {::chroot("/tmp") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED};
    if (verb == "has_ended") return {CUDA_SUCCESS, host_word(2).load()};
    if (verb == "fault") return {launch("fault", words_)};
    if (verb == "stray") return {stray(words)};
    if (verb == "reserve_and_stray") return {reserve_and_stray()};
    if (verb == "fill_large") return {fill_large(words)};
    if (verb == "read_large") return read_large();
    if (verb == "pinned") return pinned();
    if (verb == "allocate_free") return allocate_free(words);
    if (verb == "allocate_free_in_order") return {allocate_free_in_order(words)};
    if (verb == "allocate_many") return {allocate_many(words)};
    if (verb == "check_many") return check_many();
    if (verb == "use_until_the_end") return {use_until_the_end()};
    if (verb == "exit") end();
    if (verb.starts_with("nvml_")) return run_nvml(verb);
    if (verb == "more") return {make_more()};
    if (verb == "context_is_same") return context_is_same();
    if (verb == "export") return {export_memory()};
    if (verb == "random") return run_random(words);
    if (verb.starts_with("graph_")) return run_graph(verb, words);
    if (verb == "vmm") return run_part(mappings_, words);
    if (verb == "redo") return run_part(redo_, words);
    if (verb == "corner") return run_part(corners_, words);
    if (verb == "event") return run_part(events_, words);
    return {CUDA_ERROR_UNKNOWN};
  }

 private:
  [[noreturn]] static void end() {
    tells_of_its_end = true;
    std::exit(0);
  }

  template <class Function>
  Function get(const char* name) {
    return reinterpret_cast<Function>(::dlsym(library_, name));
  }

  /// What was loaded is gone when this returns.
  CUresult load(std::string code, bool as_library) {
    if (!as_library) return get<PFN_cuModuleLoadData>("cuModuleLoadData")(&module_, code.c_str());
    return get<PFN_cuLibraryLoadData>("cuLibraryLoadData")(&library_of_code_, code.c_str(), nullptr, nullptr,
                                                           0, nullptr, nullptr, 0);
  }

  /// One of its own, besides, which is not used.
  CUresult create_context() {
    const CUresult result = get<PFN_cuCtxCreate_v2>("cuCtxCreate_v2")(&made_context_, 0, 0);
    return result == CUDA_SUCCESS ? get<PFN_cuCtxPopCurrent_v2>("cuCtxPopCurrent_v2")(&made_context_)
                                  : result;
  }

  /// And begins anew: `value` is a word that it has stored then.
  /// Which programs do before they come to the GPU.
  CUresult ask_version() {
    int version = 0;
    return get<PFN_cuDriverGetVersion>("cuDriverGetVersion")(&version);
  }

  /// As each library with a CUDA runtime of its own does.
  CUresult retain_primary() {
    CUcontext retained = nullptr;
    CUresult result = get<PFN_cuInit>("cuInit")(0);
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuDevicePrimaryCtxRetain>("cuDevicePrimaryCtxRetain")(&retained, 0);
    if (result != CUDA_SUCCESS) return result;
    return retained == context_ ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  }

  Answer reset_primary() {
    constexpr unsigned int stored = 7;
    constexpr std::size_t size_bytes = std::size_t{4} << 20;
    CUdeviceptr memory = 0;
    unsigned int word = 0;
    CUresult result = get<PFN_cuDevicePrimaryCtxReset_v2>("cuDevicePrimaryCtxReset_v2")(0);
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuDevicePrimaryCtxRetain>("cuDevicePrimaryCtxRetain")(&context_, 0);
    if (result == CUDA_SUCCESS) result = get<PFN_cuCtxSetCurrent>("cuCtxSetCurrent")(context_);
    if (result == CUDA_SUCCESS) result = get<PFN_cuMemAlloc_v2>("cuMemAlloc_v2")(&memory, size_bytes);
    if (result == CUDA_SUCCESS) result = get<PFN_cuMemsetD32_v2>("cuMemsetD32_v2")(memory, stored, 1);
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuMemcpyDtoH_v2>("cuMemcpyDtoH_v2")(&word, memory, sizeof word);
    CUmodule module = nullptr;
    if (result == CUDA_SUCCESS) result = get<PFN_cuModuleLoadData>("cuModuleLoadData")(&module, ptx);
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuStreamCreate>("cuStreamCreate")(&stream_, CU_STREAM_NON_BLOCKING);
    return {result, word};
  }

  // What the guard contains.

  CUresult store_to(CUdeviceptr address) {
    const CUresult result = launch("stray", address);
    return result == CUDA_SUCCESS ? get<PFN_cuStreamSynchronize>("cuStreamSynchronize")(stream_) : result;
  }
  /// "end": behind 2 MiB; "far": 16 GiB behind their begin; "before": 16 GiB before it; "freed": into 2 MiB
  /// that were given back; "low": where null and an offset lead; "again": where the one before went.
  CUresult stray(std::istream& words) {
    constexpr std::size_t size_bytes = 2 << 20;
    std::string where;
    words >> where;
    if (where == "low") stray_ = 0xdead0000;
    if (where == "low" || where == "again") return store_to(stray_);
    CUdeviceptr memory = 0;
    const CUresult made = get<PFN_cuMemAlloc_v2>("cuMemAlloc_v2")(&memory, size_bytes);
    if (made != CUDA_SUCCESS) return made;
    constexpr CUdeviceptr far = CUdeviceptr{16} << 30;
    stray_ = where == "end" ? memory + size_bytes : where == "far" ? memory + far : memory;
    if (where == "before") stray_ = memory - far;
    if (where != "freed") return store_to(stray_);
    const CUresult freed = get<PFN_cuMemFree_v2>("cuMemFree_v2")(memory);
    return freed == CUDA_SUCCESS ? store_to(stray_) : freed;
  }
  /// Into addresses of its own, behind which there is nothing.
  CUresult reserve_and_stray() {
    const CUresult reserved =
        get<PFN_cuMemAddressReserve>("cuMemAddressReserve")(&stray_, std::size_t{64} << 20, 0, 0, 0);
    return reserved == CUDA_SUCCESS ? store_to(stray_) : reserved;
  }

  /// Code with a variable, of which nothing is used.
  CUresult load_more() { return get<PFN_cuModuleLoadData>("cuModuleLoadData")(&more_code_, ptx); }
  /// With a number: leaves it in the variables of code that comes only now. Without: their sum.
  Answer blocks(std::istream& words) {
    if (blocks_ != nullptr) {
      const CUresult result = launch_of_blocks("sum_blocks");
      return result == CUDA_SUCCESS ? read_word(words_) : Answer{result};
    }
    const std::string code = code_with_blocks();
    CUresult result = get<PFN_cuModuleLoadData>("cuModuleLoadData")(&blocks_, code.c_str());
    if (result == CUDA_SUCCESS) result = write_word(words_, words);
    return {result == CUDA_SUCCESS ? launch_of_blocks("fill_blocks") : result};
  }
  CUresult launch_of_blocks(const char* name) {
    CUfunction function = nullptr;
    CUresult result = get<PFN_cuModuleGetFunction>("cuModuleGetFunction")(&function, blocks_, name);
    void* arguments[] = {&words_};
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuLaunchKernel>("cuLaunchKernel")(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments,
                                                         nullptr);
    return result == CUDA_SUCCESS ? get<PFN_cuCtxSynchronize>("cuCtxSynchronize")() : result;
  }
  CUresult use_more() {
    CUfunction function = nullptr;
    return get<PFN_cuModuleGetFunction>("cuModuleGetFunction")(&function, more_code_, "how_many");
  }

  /// What libraries do before each launch of a kernel, so often.
  CUresult prepare_launches(std::istream& words) {
    int times = 0;
    words >> times;
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && times-- > 0) {
      CUfunction function = nullptr;
      result = find_kernel(&function, "nothing");
      if (result == CUDA_SUCCESS && library_of_code_ != nullptr)
        result = get<PFN_cuKernelGetFunction>("cuKernelGetFunction")(&function,
                                                                     reinterpret_cast<CUkernel>(function));
      if (result == CUDA_SUCCESS)
        result = get<PFN_cuFuncSetAttribute>("cuFuncSetAttribute")(
            function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
    }
    return result;
  }

  CUresult find_variable(const char* name, CUdeviceptr* address, std::size_t* size_bytes) {
    if (library_of_code_ == nullptr)
      return get<PFN_cuModuleGetGlobal_v2>("cuModuleGetGlobal_v2")(address, size_bytes, module_, name);
    return get<PFN_cuLibraryGetGlobal>("cuLibraryGetGlobal")(address, size_bytes, library_of_code_, name);
  }

  CUresult take_steps() { return find_variable("steps", &steps_, nullptr); }

  Answer read_word(CUdeviceptr address) {
    std::uint32_t value = 0;
    const CUresult result = get<PFN_cuMemcpyDtoH_v2>("cuMemcpyDtoH_v2")(&value, address, sizeof value);
    return {result, value};
  }

  CUresult write_word(CUdeviceptr address, std::istream& words) {
    std::uint32_t value = 0;
    words >> value;
    return get<PFN_cuMemcpyHtoD_v2>("cuMemcpyHtoD_v2")(address, &value, sizeof value);
  }

  /// To the GPU, between other bytes: by one of three calls.
  CUresult copy_address(std::istream& words) {
    int how = 0;
    words >> how;
    static std::array<CUdeviceptr, 1000> bytes{};
    bytes[998] = steps_ + 1;
    const std::size_t size_bytes = sizeof bytes - 4;
    const CUdeviceptr to = large_ + 4;
    const auto* const from = reinterpret_cast<const char*>(bytes.data()) + 4;
    if (how == 0) return get<PFN_cuMemcpyHtoD_v2>("cuMemcpyHtoD_v2")(to, from, size_bytes);
    const CUresult result =
        how == 1 ? get<PFN_cuMemcpyHtoDAsync_v2>("cuMemcpyHtoDAsync_v2")(to, from, size_bytes, stream_)
                 : get<PFN_cuMemcpyAsync>("cuMemcpyAsync")(to, reinterpret_cast<CUdeviceptr>(from),
                                                           size_bytes, stream_);
    return result == CUDA_SUCCESS ? get<PFN_cuStreamSynchronize>("cuStreamSynchronize")(stream_) : result;
  }

  // The constant: its second word is used, so that an address inside of it is.

  /// Whether it is where it was before.
  Answer take() {
    CUdeviceptr address = 0;
    std::size_t size_bytes = 0;
    const CUresult result = find_variable("factor", &address, &size_bytes);
    const bool is_same = factor_ == 0 || factor_ == address;
    factor_ = address;
    return {result, is_same && size_bytes == 8 ? 1ULL : 0ULL};
  }

  CUresult set_factor_2d(std::istream& words) {
    std::uint32_t value = 0;
    words >> value;
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = &value;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = factor_ + 4;
    copy.WidthInBytes = sizeof value;
    copy.Height = 1;
    return get<PFN_cuMemcpy2D_v2>("cuMemcpy2D_v2")(&copy);
  }

  /// As kernels see it.
  Answer factor() {
    CUresult result = launch("what_factor", spare_words_);
    if (result == CUDA_SUCCESS) result = get<PFN_cuStreamSynchronize>("cuStreamSynchronize")(stream_);
    std::uint32_t value = 0;
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuMemcpyDtoH_v2>("cuMemcpyDtoH_v2")(&value, spare_words_, sizeof value);
    return {result, value};
  }

  /// For the driver, asked in its ways.
  Answer is_where_it_was() {
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
    CUdeviceptr one = 0;
    CUdeviceptr several = 0;
    void* into = &several;
    CUresult result = get<PFN_cuPointerGetAttribute>("cuPointerGetAttribute")(&one, attribute, factor_ + 4);
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuPointerGetAttributes>("cuPointerGetAttributes")(1, &attribute, &into, factor_ + 4);
    return {result, one == factor_ + 4 && several == factor_ + 4 ? 1ULL : 0ULL};
  }

  CUresult give_address() {
    const CUresult result = launch("nothing", factor_ + 4);
    return result == CUDA_SUCCESS ? get<PFN_cuStreamSynchronize>("cuStreamSynchronize")(stream_) : result;
  }

  CUresult give_address_in_a_buffer() {
    CUfunction function = nullptr;
    const CUresult found = find_kernel(&function, "nothing");
    if (found != CUDA_SUCCESS) return found;
    CUdeviceptr inside = factor_;
    std::size_t size_bytes = sizeof inside;
    std::array<void*, 5> extra{reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size_bytes,
                               reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT), &inside,
                               reinterpret_cast<void*>(CU_LAUNCH_PARAM_END_AS_INT)};
    return get<PFN_cuLaunchKernel>("cuLaunchKernel")(function, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr,
                                                     extra.data());
  }

  CUresult init(const std::string& code, bool as_library = false) {
    CUresult result = get<PFN_cuInit>("cuInit")(0);
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuDevicePrimaryCtxRetain>("cuDevicePrimaryCtxRetain")(&context_, 0);
    if (result == CUDA_SUCCESS) result = get<PFN_cuCtxSetCurrent>("cuCtxSetCurrent")(context_);
    if (result == CUDA_SUCCESS) result = load(code, as_library);
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuStreamCreate>("cuStreamCreate")(&stream_, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuEventCreate>("cuEventCreate")(&event_, CU_EVENT_DISABLE_TIMING);
    const auto allocate = get<PFN_cuMemAlloc_v2>("cuMemAlloc_v2");
    if (result == CUDA_SUCCESS) result = allocate(&words_, word_count * sizeof(std::uint32_t));
    if (result == CUDA_SUCCESS) result = allocate(&spare_words_, word_count * sizeof(std::uint32_t));
    if (result == CUDA_SUCCESS) result = allocate(&large_, large_bytes);
    const auto fill = get<PFN_cuMemsetD32_v2>("cuMemsetD32_v2");
    if (result == CUDA_SUCCESS) result = fill(words_, 7, word_count);
    if (result == CUDA_SUCCESS) result = fill(spare_words_, 0, word_count);
    if (result == CUDA_SUCCESS) result = get<PFN_cuMemHostAlloc>("cuMemHostAlloc")(&host_, 4096, 0);
    return result == CUDA_SUCCESS ? get<PFN_cuCtxSynchronize>("cuCtxSynchronize")() : result;
  }

  /// Of a library it is a kernel, which may stand wherever a function may.
  /// From now on it finds its kernels as cuFFT does (shared/abi/cuda_tables.h), once each.
  CUresult use_table() {
    const void* table = nullptr;
    const CUresult result = get<PFN_cuGetExportTable>("cuGetExportTable")(&table, &abi::module_table_id);
    if (result != CUDA_SUCCESS) return result;
    const auto each = reinterpret_cast<abi::CudaEachFunction>(
        static_cast<const std::uintptr_t*>(table)[abi::module_table_each_function]);
    std::vector<CUfunction> all;
    const auto take = [](void* kept, CUfunction function) {
      static_cast<std::vector<CUfunction>*>(kept)->push_back(function);
    };
    if (each(context_, module_, take, &all) != 1) return CUDA_ERROR_INVALID_HANDLE;
    for (const CUfunction function : all) {
      const char* name = nullptr;
      if (get<PFN_cuFuncGetName>("cuFuncGetName")(&name, function) == CUDA_SUCCESS)
        in_table_[name] = function;
    }
    return CUDA_SUCCESS;
  }

  /// What cuBLAS and cuBLASLt ask for (shared/abi/cuda_tables.h), of a context that it has created and of two
  /// streams. The first
  /// question is of what was answered at the step before: as if there had been a move between the two.
  CUresult ask_of_streams() {
    const void* found = nullptr;
    if (get<PFN_cuGetExportTable>("cuGetExportTable")(&found, &abi::stream_table_id) != CUDA_SUCCESS)
      return CUDA_ERROR_NOT_FOUND;
    const auto* const table = static_cast<const std::uintptr_t*>(found);
    const auto object_of = reinterpret_cast<abi::CudaStreamObject>(table[abi::stream_table_object]);
    const auto word_of = reinterpret_cast<abi::CudaStreamWord>(table[abi::stream_table_word]);
    const auto number_of = reinterpret_cast<abi::CudaContextNumber>(table[abi::stream_table_context]);
    std::uint64_t number = 0;
    if (const CUresult none = number_of(made_context_, &number); none != CUDA_SUCCESS) return none;
    std::array<std::uint64_t, 2> words{};
    CUresult result = of_stream_ == nullptr ? CUDA_SUCCESS : word_of(context_, of_stream_, words.data());
    for (const CUstream stream : {CUstream{nullptr}, stream_}) {
      if (result == CUDA_SUCCESS) result = object_of(context_, stream, &of_stream_, 0);
      if (result == CUDA_SUCCESS)
        result = word_of(context_, of_stream_, &words.at(stream == stream_ ? 1 : 0));
    }
    return result == CUDA_SUCCESS && words[0] == words[1] ? CUDA_ERROR_INVALID_VALUE : result;
  }

  /// Libraries end what they have on the GPU in destructors of theirs, which run after those of the thread's
  /// variables.
  CUresult use_until_the_end() {
    static Program* mine = this;
    std::atexit([] {
      CUdeviceptr words = mine->words_;
      CUresult result = mine->get<PFN_cuMemAlloc_v2>("cuMemAlloc_v2")(&words, 64);
      if (result == CUDA_SUCCESS) result = mine->get<PFN_cuCtxSynchronize>("cuCtxSynchronize")();
      if (result == CUDA_SUCCESS) result = mine->get<PFN_cuMemFree_v2>("cuMemFree_v2")(words);
      const std::string text = std::to_string(static_cast<int>(result)) + " 3";
      if (::write(3, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(1);
    });
    return CUDA_SUCCESS;
  }

  CUresult find_kernel(CUfunction* function, const char* name) {
    if (const auto known = in_table_.find(name); known != in_table_.end()) {
      *function = known->second;
      return CUDA_SUCCESS;
    }
    if (library_of_code_ == nullptr)
      return get<PFN_cuModuleGetFunction>("cuModuleGetFunction")(function, module_, name);
    return get<PFN_cuLibraryGetKernel>("cuLibraryGetKernel")(reinterpret_cast<CUkernel*>(function),
                                                             library_of_code_, name);
  }

  CUresult launch(const char* kernel, CUdeviceptr address) {
    CUfunction function = nullptr;
    const CUresult found = find_kernel(&function, kernel);
    if (found != CUDA_SUCCESS) return found;
    std::uint32_t count = word_count;
    std::array<void*, 2> parameters{&address, &count};
    return get<PFN_cuLaunchKernel>("cuLaunchKernel")(function, 1, 1, 1, 1, 1, 1, 0, stream_,
                                                     parameters.data(), nullptr);
  }

  CUresult step() {
    CUresult result = launch("step", words_);
    if (result == CUDA_SUCCESS) result = get<PFN_cuEventRecord>("cuEventRecord")(event_, stream_);
    if (result == CUDA_SUCCESS) result = get<PFN_cuStreamSynchronize>("cuStreamSynchronize")(stream_);
    return result == CUDA_SUCCESS ? get<PFN_cuEventQuery>("cuEventQuery")(event_) : result;
  }

  Answer digest() {
    std::array<std::uint32_t, word_count> words{};
    const CUresult result = get<PFN_cuMemcpyDtoH_v2>("cuMemcpyDtoH_v2")(words.data(), words_, sizeof words);
    unsigned long long sum = 0;
    for (const std::uint32_t word : words) sum = sum * 31 + word;
    return {result, sum};
  }

  Answer steps() {
    CUresult result = launch("how_many", spare_words_);
    if (result == CUDA_SUCCESS) result = get<PFN_cuStreamSynchronize>("cuStreamSynchronize")(stream_);
    std::uint32_t count = 0;
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuMemcpyDtoH_v2>("cuMemcpyDtoH_v2")(&count, spare_words_, sizeof count);
    return {result, count};
  }

  CUresult fill_large(std::istream& words) {
    unsigned int value = 0;
    words >> value;
    const CUresult result = get<PFN_cuMemsetD32_v2>("cuMemsetD32_v2")(large_, value, large_bytes / 4);
    return result == CUDA_SUCCESS ? get<PFN_cuCtxSynchronize>("cuCtxSynchronize")() : result;
  }

  /// The last word.
  Answer read_large() {
    std::uint32_t word = 0;
    const CUresult result =
        get<PFN_cuMemcpyDtoH_v2>("cuMemcpyDtoH_v2")(&word, large_ + large_bytes - 4, sizeof word);
    return {result, word};
  }

  /// The first word, as a copy of the GPU's into pinned memory sees it, which the driver still knows as that.
  Answer pinned() {
    CUdeviceptr on_gpu = 0;
    const CUresult known =
        get<PFN_cuMemHostGetDevicePointer_v2>("cuMemHostGetDevicePointer_v2")(&on_gpu, host_, 0);
    if (known != CUDA_SUCCESS) return {known};
    CUresult result = get<PFN_cuMemcpyDtoHAsync_v2>("cuMemcpyDtoHAsync_v2")(host_, words_, 4, stream_);
    if (result == CUDA_SUCCESS) result = get<PFN_cuStreamSynchronize>("cuStreamSynchronize")(stream_);
    return {result, *static_cast<std::uint32_t*>(host_)};
  }

  /// NVML has some of the devices open that a driver has open, and maps none of them.
  CUresult open_nvml() {
    auto device = os::create_memory_file("nvidiactl", os::page_size());
    if (::dlopen(FIREBREAK_NVML, RTLD_NOW) == nullptr || !device) return CUDA_ERROR_NOT_FOUND;
    nvml_devices_.push_back(std::move(*device));
    return CUDA_SUCCESS;
  }

  Answer run_nvml(const std::string& verb) {
    if (verb == "nvml_open") return {open_nvml()};
    const bool are_open = std::ranges::all_of(
        nvml_devices_, [](const os::Fd& device) { return os::has_fixed_size(device.get()); });
    return {CUDA_SUCCESS, are_open ? 1U : 0U};
  }

  /// So many times; the answer is how many addresses there were.
  Answer allocate_free(std::istream& words) {
    unsigned int times = 0;
    words >> times;
    CUdeviceptr first = 0;
    unsigned long long differ = 0;
    for (unsigned int i = 0; i < times; ++i) {
      CUdeviceptr address = 0;
      CUresult result = get<PFN_cuMemAlloc_v2>("cuMemAlloc_v2")(&address, large_bytes);
      if (result == CUDA_SUCCESS) result = get<PFN_cuMemFree_v2>("cuMemFree_v2")(address);
      if (result != CUDA_SUCCESS) return {result};
      if (i == 0) first = address;
      differ += address != first ? 1 : 0;
    }
    return {CUDA_SUCCESS, differ + 1};
  }

  /// In the order of the stream, so many times, with nobody who waits: more than the GPU has, in all.
  CUresult allocate_free_in_order(std::istream& words) {
    unsigned int times = 0;
    words >> times;
    CUdeviceptr address = 0;
    for (unsigned int i = 0; i < times; ++i) {
      CUresult result = get<PFN_cuMemAllocAsync>("cuMemAllocAsync")(&address, large_bytes, stream_);
      if (result == CUDA_SUCCESS)
        result = get<PFN_cuMemsetD32Async>("cuMemsetD32Async")(address, i, large_bytes / 4, stream_);
      if (result == CUDA_SUCCESS) result = get<PFN_cuMemFreeAsync>("cuMemFreeAsync")(address, stream_);
      if (result != CUDA_SUCCESS) return result;
    }
    // Once is enough.
    const CUresult again = get<PFN_cuMemFreeAsync>("cuMemFreeAsync")(address, stream_);
    return again == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
  }

  /// Blocks of the driver's, each with its number in it.
  CUresult allocate_many(std::istream& words) {
    std::size_t count = 0;
    words >> count;
    CUresult result = CUDA_SUCCESS;
    for (std::size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
      result = get<PFN_cuMemAlloc_v2>("cuMemAlloc_v2")(&many_.emplace_back(), many_bytes);
      const auto number = static_cast<unsigned int>(i);
      if (result == CUDA_SUCCESS)
        result = get<PFN_cuMemsetD32_v2>("cuMemsetD32_v2")(many_.back(), number, many_bytes / 4);
    }
    return result == CUDA_SUCCESS ? get<PFN_cuCtxSynchronize>("cuCtxSynchronize")() : result;
  }

  /// How many of them still have it, in their last word.
  Answer check_many() {
    unsigned long long right = 0;
    for (std::size_t i = 0; i < many_.size(); ++i) {
      std::uint32_t word = 0;
      const CUresult result =
          get<PFN_cuMemcpyDtoH_v2>("cuMemcpyDtoH_v2")(&word, many_[i] + many_bytes - 4, sizeof word);
      if (result != CUDA_SUCCESS) return {result};
      right += word == i ? 1 : 0;
    }
    return {CUDA_SUCCESS, right};
  }

  /// Another module, stream and event, and memory: from now on these are used.
  CUresult make_more() {
    CUresult result = get<PFN_cuStreamCreate>("cuStreamCreate")(&stream_, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS) result = get<PFN_cuEventCreate>("cuEventCreate")(&event_, 0);
    CUdeviceptr words = 0;
    const std::size_t bytes = word_count * sizeof(std::uint32_t);
    if (result == CUDA_SUCCESS) result = get<PFN_cuMemAlloc_v2>("cuMemAlloc_v2")(&words, bytes);
    if (result == CUDA_SUCCESS) result = get<PFN_cuMemcpyDtoD_v2>("cuMemcpyDtoD_v2")(words, words_, bytes);
    words_ = words;
    return result == CUDA_SUCCESS ? get<PFN_cuCtxSynchronize>("cuCtxSynchronize")() : result;
  }

  Answer context_is_same() {
    CUcontext now = nullptr;
    CUresult result = get<PFN_cuCtxGetCurrent>("cuCtxGetCurrent")(&now);
    CUcontext of_stream = nullptr;
    if (result == CUDA_SUCCESS) result = get<PFN_cuStreamGetCtx>("cuStreamGetCtx")(stream_, &of_stream);
    return {result, now == context_ && of_stream == context_ ? 1ULL : 0ULL};
  }

  std::atomic_ref<std::uint32_t> host_word(std::size_t index) {
    return std::atomic_ref(static_cast<std::uint32_t*>(host_)[index]);
  }

  /// By the CPU.
  CUresult release() {
    host_word(1).store(1);
    return CUDA_SUCCESS;
  }

  /// Those of so many seeds from one on, one after the other.
  Answer run_random(std::istream& words) {
    unsigned long long seed = 0;
    unsigned long long count = 0;
    unsigned int calls = 0;
    bool with_contexts = false;
    words >> seed >> count >> calls >> with_contexts;
    const auto driver = cuda::Backend::from(
        library_, [](void* library, const char* symbol) { return ::dlsym(library, symbol); });
    unsigned long long all = 0;
    for (unsigned long long i = 0; i < count; ++i)
      all = all * 31 + test::run_random_program(driver, seed + i, calls, with_contexts);
    return {CUDA_SUCCESS, all};
  }

  /// What it has for itself is there from the first of its verbs on.
  template <class Part>
  Answer run_part(std::optional<Part>& part, std::istream& words) {
    std::string what;
    words >> what;
    if (!part) {
      part.emplace(cuda::Backend::from(
          library_, [](void* library, const char* symbol) { return ::dlsym(library, symbol); }));
    }
    const auto [result, value] = part->run(what, words);
    return {result, value};
  }

  Answer run_graph(const std::string& verb, std::istream& words) {
    std::string what;
    words >> what;
    if (!graphs_) {
      graphs_.emplace(cuda::Backend::from(
          library_, [](void* library, const char* symbol) { return ::dlsym(library, symbol); }));
    }
    if (verb == "graph_make") return {graphs_->make(what)};
    if (verb == "graph_begin") return {graphs_->begin()};
    if (verb == "graph_end") return {graphs_->end()};
    if (verb == "graph_change") return {graphs_->change(what)};
    if (verb == "graph_make_again") return {graphs_->make_again()};
    if (verb == "graph_destroy") return {graphs_->destroy()};
    if (verb == "graph_destroy_graph") return {graphs_->destroy_graph()};
    const auto [result, value] = verb == "graph_count"     ? graphs_->count_nodes()
                                 : verb == "graph_enabled" ? graphs_->is_enabled()
                                                           : graphs_->launch();
    return {result, value};
  }

  /// By a copy in a stream of its own.
  CUresult release_by_copy() {
    static const std::uint32_t one = 1;
    CUstream other = nullptr;
    CUresult result = get<PFN_cuStreamCreate>("cuStreamCreate")(&other, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
      result = get<PFN_cuMemcpyHtoDAsync_v2>("cuMemcpyHtoDAsync_v2")(spare_words_ + 4, &one, 4, other);
    return result == CUDA_SUCCESS ? get<PFN_cuStreamSynchronize>("cuStreamSynchronize")(other) : result;
  }

  /// What cuInit answers in a child. It is waited for.
  Answer fork_and_init() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(static_cast<int>(get<PFN_cuInit>("cuInit")(0)));
    int status = 0;
    ::waitpid(child, &status, 0);
    return {CUDA_SUCCESS, static_cast<unsigned long long>(WEXITSTATUS(status))};
  }

  CUresult export_memory() {
    CUipcMemHandle handle{};
    return get<PFN_cuIpcGetMemHandle>("cuIpcGetMemHandle")(&handle, large_);
  }

  void* library_;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUmodule more_code_ = nullptr;
  CUmodule blocks_ = nullptr;
  CUlibrary library_of_code_ = nullptr;
  std::map<std::string, CUfunction> in_table_;
  CUcontext made_context_ = nullptr;
  void* of_stream_ = nullptr;  ///< what the driver has of stream_
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr words_ = 0;
  CUdeviceptr spare_words_ = 0;
  CUdeviceptr large_ = 0;
  CUdeviceptr factor_ = 0;
  CUdeviceptr stray_ = 0;  ///< where the last one went
  CUdeviceptr steps_ = 0;
  std::vector<CUdeviceptr> many_;
  std::optional<test::GraphProgram> graphs_;
  std::optional<test::MappingProgram> mappings_;
  std::optional<test::EventProgram> events_;
  std::optional<test::RedoProgram> redo_;
  std::vector<os::Fd> nvml_devices_;
  std::optional<test::CornerProgram> corners_;
  void* host_ = nullptr;
};

}  // namespace

int main(int argument_count, char** arguments) {
  std::atexit(&tell_of_end);
  const char* const shim = std::getenv("FIREBREAK_TEST_SHIM");
  if (shim != nullptr && argument_count > 1) ::setenv("FIREBREAK_TEST_SHIM_OF", arguments[1], 1);
  void* library = argument_count > 1 ? ::dlopen(shim != nullptr ? shim : arguments[1], RTLD_NOW) : nullptr;
  if (library == nullptr) return 1;
  Program program(library);
  os::Socket test(os::Fd(3));
  while (auto message = test.receive(Milliseconds(-1))) {
    std::istringstream words(
        std::string(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size()));
    std::string verb;
    words >> verb;
    const Answer answer = program.run(verb, words);
    const std::string text =
        std::to_string(static_cast<int>(answer.result)) + " " + std::to_string(answer.value);
    if (!test.send(std::as_bytes(std::span(text)), {}, Milliseconds(-1))) return 1;
  }
  return 0;
}
