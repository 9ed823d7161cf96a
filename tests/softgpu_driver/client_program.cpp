// SPDX-License-Identifier: Apache-2.0
/// A plain driver-API program that does what the test at the other end of descriptor 3 tells it: one command
/// a message, one answer "RESULT [VALUE]" each.
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "ground/os/socket.h"
#include "shared/abi/cuda_driver_functions.h"
#include "tests/softgpu_driver/kernels.h"

namespace {

using namespace firebreak;

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;

template <class Pointer>
Pointer entry(void* library, const char* name) {
  return reinterpret_cast<Pointer>(::dlsym(library, name));
}

struct Answer {
  CUresult result = CUDA_SUCCESS;
  unsigned long long value = 0;
  int descriptor = -1;
};

class Client {
 public:
  explicit Client(void* library) : library_(library) {}

  Answer run(const std::string& verb, std::istream& words, std::vector<os::Fd>& descriptors) {
    if (verb == "init") return {init()};
    if (verb == "buffer") return {create_buffer(words)};
    if (verb == "import") return {import_buffer(descriptors)};
    if (verb == "export") return export_buffer();
    if (verb == "launch") return {launch(words, 1)};
    if (verb == "launch_blocks") return {launch_blocks(words)};
    if (verb == "copy_into_hole") return {copy_into_hole(words)};
    if (verb == "sync") return {entry<PFN_cuCtxSynchronize>(library_, "cuCtxSynchronize")()};
    if (verb == "read") return read(words);
    if (verb == "allocate") return {allocate()};
    if (verb == "allocate_mib") return {allocate_mib(words)};
    if (verb == "free_mib") return free_mib();
    if (verb == "sms") return sms();
    if (verb == "gpu") return gpu();
    if (verb == "make_managed") return {make_managed(words)};
    if (verb == "make_hole") return {make_hole(words)};
    if (verb == "context") return {entry<PFN_cuCtxCreate_v2>(library_, "cuCtxCreate_v2")(&context_, 0, 0)};
    if (verb == "primary") return {retain_primary()};
    if (verb == "small_context") return {small_context(words)};
    if (verb == "context_sms") return context_sms();
    if (verb == "limit_stack") return {limit_stack(words)};
    if (verb == "end_context") return {entry<PFN_cuCtxDestroy_v2>(library_, "cuCtxDestroy_v2")(context_)};
    if (verb == "core_dumps") return {enter_core_dump_mode(words)};
    if (verb == "exit") std::exit(0);
    return {CUDA_ERROR_UNKNOWN};
  }

 private:
  CUresult allocate_mib(std::istream& words) {
    std::size_t mib = 0;
    words >> mib;
    CUdeviceptr pointer = 0;
    return entry<PFN_cuMemAlloc_v2>(library_, "cuMemAlloc_v2")(&pointer, mib << 20);
  }

  /// The last byte of its UUID.
  Answer gpu() {
    CUuuid uuid{};
    const CUresult result = entry<PFN_cuDeviceGetUuid_v2>(library_, "cuDeviceGetUuid_v2")(&uuid, 0);
    return {result, static_cast<unsigned char>(uuid.bytes[15])};
  }

  Answer free_mib() {
    std::size_t free_bytes = 0, total_bytes = 0;
    const CUresult result =
        entry<PFN_cuMemGetInfo_v2>(library_, "cuMemGetInfo_v2")(&free_bytes, &total_bytes);
    return {result, free_bytes >> 20};
  }

  Answer sms() {
    int count = 0;
    const CUresult result = entry<PFN_cuDeviceGetAttribute>(library_, "cuDeviceGetAttribute")(
        &count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    return {result, static_cast<unsigned long long>(count)};
  }

  CUresult init() {
    const CUresult initialised = entry<PFN_cuInit>(library_, "cuInit")(0);
    if (initialised != CUDA_SUCCESS) return initialised;
    const CUresult created = entry<PFN_cuCtxCreate_v2>(library_, "cuCtxCreate_v2")(&context_, 0, 0);
    if (created != CUDA_SUCCESS) return created;
    return entry<PFN_cuModuleLoadData>(library_, "cuModuleLoadData")(&module_, test::kernels);
  }

  /// "FILE": by calls for the process, as Firebreak's libraries make them.
  CUresult enter_core_dump_mode(std::istream& words) {
    std::string file;
    words >> file;
    bool yes = true;
    unsigned int flags = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT;
    CUresult result = CUDA_SUCCESS;
    const auto set = [&](CUcoredumpSettings setting, void* value, std::size_t size_bytes) {
      if (result == CUDA_SUCCESS)
        result = entry<PFN_cuCoredumpSetAttributeGlobal>(library_, "cuCoredumpSetAttributeGlobal")(
            setting, value, &size_bytes);
    };
    set(CU_COREDUMP_LIGHTWEIGHT, &yes, sizeof(yes));
    set(CU_COREDUMP_GENERATION_FLAGS, &flags, sizeof(flags));
    set(CU_COREDUMP_FILE, file.data(), file.size() + 1);
    set(CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, sizeof(yes));
    return result;
  }

  CUresult retain_primary() {
    const CUresult initialised = entry<PFN_cuInit>(library_, "cuInit")(0);
    if (initialised != CUDA_SUCCESS) return initialised;
    return entry<PFN_cuDevicePrimaryCtxRetain>(library_, "cuDevicePrimaryCtxRetain")(&context_, 0);
  }

  /// At the address that follows, if any.
  CUresult create_buffer(std::istream& words) {
    if (CUdeviceptr wanted = 0; words >> wanted) buffer_address_ = wanted;
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    const CUresult created =
        entry<PFN_cuMemCreate>(library_, "cuMemCreate")(&handle_, buffer_bytes, &properties, 0);
    return created == CUDA_SUCCESS ? map_buffer() : created;
  }

  CUresult map_buffer() {
    CUdeviceptr address = 0;
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = entry<PFN_cuMemAddressReserve>(library_, "cuMemAddressReserve")(&address, buffer_bytes,
                                                                                      0, buffer_address_, 0);
    if (result == CUDA_SUCCESS) {
      result = entry<PFN_cuMemMap>(library_, "cuMemMap")(address, buffer_bytes, 0, handle_, 0);
    }
    if (result != CUDA_SUCCESS) return result;
    return entry<PFN_cuMemSetAccess>(library_, "cuMemSetAccess")(address, buffer_bytes, &access, 1);
  }

  CUresult import_buffer(std::vector<os::Fd>& descriptors) {
    if (descriptors.empty()) return CUDA_ERROR_UNKNOWN;
    auto* number = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptors.front().get()));
    const CUresult imported =
        entry<PFN_cuMemImportFromShareableHandle>(library_, "cuMemImportFromShareableHandle")(
            &handle_, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    return imported == CUDA_SUCCESS ? map_buffer() : imported;
  }

  Answer export_buffer() {
    Answer answer;
    answer.result = entry<PFN_cuMemExportToShareableHandle>(library_, "cuMemExportToShareableHandle")(
        &answer.descriptor, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    return answer;
  }

  /// "BLOCKS KERNEL [ARGUMENT]"
  CUresult launch_blocks(std::istream& words) {
    unsigned int blocks = 0;
    words >> blocks;
    return launch(words, blocks);
  }

  CUresult launch(std::istream& words, unsigned int blocks) {
    std::string kernel;
    CUdeviceptr argument = buffer_address_;
    words >> kernel >> argument;
    CUfunction function = nullptr;
    const CUresult found =
        entry<PFN_cuModuleGetFunction>(library_, "cuModuleGetFunction")(&function, module_, kernel.c_str());
    if (found != CUDA_SUCCESS) return found;
    if (words.fail()) argument = buffer_address_;
    void* arguments[] = {&argument};
    return entry<PFN_cuLaunchKernel>(library_, "cuLaunchKernel")(function, blocks, 1, 1, 1, 1, 1, 0, nullptr,
                                                                 arguments, nullptr);
  }

  CUresult allocate() {
    CUdeviceptr address = 0;
    return entry<PFN_cuMemAlloc_v2>(library_, "cuMemAlloc_v2")(&address, buffer_bytes);
  }

  /// With so many SMs.
  CUresult small_context(std::istream& words) {
    CUexecAffinityParam affinity{CU_EXEC_AFFINITY_TYPE_SM_COUNT, {}};
    words >> affinity.param.smCount.val;
    CUctxCreateParams params{&affinity, 1, nullptr};
    return entry<PFN_cuCtxCreate_v4>(library_, "cuCtxCreate_v4")(&context_, &params, 0, 0);
  }

  Answer context_sms() {
    CUexecAffinityParam affinity{};
    const CUresult result = entry<PFN_cuCtxGetExecAffinity>(library_, "cuCtxGetExecAffinity")(
        &affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
    return {result, affinity.param.smCount.val};
  }

  CUresult limit_stack(std::istream& words) {
    std::size_t bytes = 0;
    words >> bytes;
    return entry<PFN_cuCtxSetLimit>(library_, "cuCtxSetLimit")(CU_LIMIT_STACK_SIZE, bytes);
  }

  /// A copy that waits until its destination is unmapped, and is a managed range where "FIRST LENGTH"
  /// follows.
  CUresult copy_into_hole(std::istream& words) {
    CUdeviceptr source = 0;
    void* host = nullptr;
    CUstream stream = nullptr;
    CUresult result = entry<PFN_cuMemAlloc_v2>(library_, "cuMemAlloc_v2")(&source, 4096);
    if (result == CUDA_SUCCESS)
      result = entry<PFN_cuMemAllocHost_v2>(library_, "cuMemAllocHost_v2")(&host, 4096);
    if (result == CUDA_SUCCESS) result = entry<PFN_cuStreamCreate>(library_, "cuStreamCreate")(&stream, 0);
    if (result != CUDA_SUCCESS) return result;
    const auto gate = reinterpret_cast<CUdeviceptr>(host);
    auto* word = static_cast<std::uint32_t*>(host);
    entry<PFN_cuStreamWaitValue32_v2>(library_, "cuStreamWaitValue32_v2")(stream, gate, 1,
                                                                          CU_STREAM_WAIT_VALUE_EQ);
    result = entry<PFN_cuMemcpyDtoDAsync_v2>(library_, "cuMemcpyDtoDAsync_v2")(buffer_address_, source, 4096,
                                                                               stream);
    if (result != CUDA_SUCCESS) return result;
    result = entry<PFN_cuMemUnmap>(library_, "cuMemUnmap")(buffer_address_, buffer_bytes);
    if (result == CUDA_SUCCESS && !(words >> std::ws).eof()) {
      entry<PFN_cuMemAddressFree>(library_, "cuMemAddressFree")(buffer_address_, buffer_bytes);
      result = make_managed(words);
    }
    std::atomic_ref(*word).store(1);
    return result;
  }

  /// Of "FIRST LENGTH", on whichever of this process's descriptors takes it.
  CUresult make_managed(std::istream& words) {
    std::uint64_t begin = 0, length = 0;
    words >> begin >> length;
    void* const wanted = reinterpret_cast<void*>(begin);
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry, ignored).string().find("nvidia-uvm") == std::string::npos)
        continue;
      const int descriptor = std::atoi(entry.path().filename().c_str());
      if (::mmap(wanted, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, descriptor,
                 static_cast<off_t>(begin)) == wanted) {
        return CUDA_SUCCESS;
      }
    }
    return CUDA_ERROR_OPERATING_SYSTEM;
  }

  CUresult make_hole(std::istream& words) {
    std::uint64_t begin = 0, length = 0;
    words >> begin >> length;
    return ::munmap(reinterpret_cast<void*>(begin), length) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  }

  Answer read(std::istream& words) {
    CUdeviceptr index = 0;
    words >> index;
    unsigned int word = 0;
    const CUresult result = entry<PFN_cuMemcpyDtoH_v2>(library_, "cuMemcpyDtoH_v2")(
        &word, buffer_address_ + index * sizeof(word), sizeof(word));
    return {result, word};
  }

  void* library_;
  CUdeviceptr buffer_address_ = 0x500000000000;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUmemGenericAllocationHandle handle_ = 0;
};

}  // namespace

int main(int argument_count, char** arguments) {
  void* library = argument_count > 1 ? ::dlopen(arguments[1], RTLD_NOW) : nullptr;
  if (library == nullptr) return 1;
  Client client(library);
  os::Socket test(os::Fd(3));
  while (auto message = test.receive(Milliseconds(-1))) {
    std::istringstream words(
        std::string(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size()));
    std::string verb;
    words >> verb;
    const Answer answer = client.run(verb, words, message->descriptors);
    const std::string text =
        std::to_string(static_cast<int>(answer.result)) + " " + std::to_string(answer.value);
    const std::span<const int> descriptors(&answer.descriptor, answer.descriptor < 0 ? 0 : 1);
    if (!test.send(std::as_bytes(std::span(text)), descriptors, Milliseconds(-1))) return 1;
  }
  return 0;
}
