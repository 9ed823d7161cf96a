// SPDX-License-Identifier: Apache-2.0
/// A program that links against libcuda and knows nothing of the guard. It says what each of its calls came
/// to, without addresses, which nobody promises: with the guard preloaded it has to say the same.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "shared/abi/cuda_driver_functions.h"

extern "C" {
CUresult cuInit(unsigned int);
CUresult cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuMemAllocPitch_v2(CUdeviceptr*, std::size_t*, std::size_t, std::size_t, unsigned int);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuIpcGetMemHandle(CUipcMemHandle*, CUdeviceptr);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr*, CUipcMemHandle, unsigned int);
CUresult cuIpcCloseMemHandle(CUdeviceptr);
CUresult cuMemGetAddressRange_v2(CUdeviceptr*, std::size_t*, CUdeviceptr);
CUresult cuPointerGetAttribute(void*, CUpointer_attribute, CUdeviceptr);
CUresult cuPointerGetAttributes(unsigned int, CUpointer_attribute*, void**, CUdeviceptr);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, std::size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, std::size_t);
CUresult cuMemAllocManaged(CUdeviceptr*, std::size_t, unsigned int);
CUresult cuMemAllocAsync(CUdeviceptr*, std::size_t, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemHostAlloc(void**, std::size_t, unsigned int);
CUresult cuMemFreeHost(void*);
CUresult cuMemAddressReserve(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long);
CUresult cuMemAddressFree(CUdeviceptr, std::size_t);
CUresult cuMemCreate(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,
                     unsigned long long);
CUresult cuMemRelease(CUmemGenericAllocationHandle);
CUresult cuMemMap(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long);
CUresult cuMemUnmap(CUdeviceptr, std::size_t);
CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t);
}

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t granule = 2 * mib;

void say(const char* call, CUresult result, std::uint64_t value = 0) {
  std::printf("%s %d %llu\n", call, static_cast<int>(result), static_cast<unsigned long long>(value));
}

/// Fills it and reads its last byte back.
void use(const char* call, CUdeviceptr pointer, std::size_t size_bytes) {
  unsigned char last = 0;
  CUresult result = cuMemsetD8_v2(pointer, 0x5a, size_bytes);
  if (result == CUDA_SUCCESS) result = cuMemcpyDtoH_v2(&last, pointer + size_bytes - 1, 1);
  say(call, result, last);
}

void ask(CUdeviceptr pointer, CUdeviceptr inside) {
  CUdeviceptr base = 0;
  std::size_t size_bytes = 0;
  CUresult result = cuMemGetAddressRange_v2(&base, &size_bytes, inside);
  say("range", result, base == pointer ? size_bytes : ~std::uint64_t{0});
  CUdeviceptr start = 0;
  result = cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside);
  say("start", result, start == pointer);
  std::size_t size = 0;
  result = cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside);
  say("size", result, size);
  std::array attributes{CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
  std::array<void*, 2> answers{&size, &start};
  size = start = 0;
  result = cuPointerGetAttributes(2, attributes.data(), answers.data(), inside);
  say("attributes", result, start == pointer ? size : ~std::uint64_t{0});
  CUmemorytype type{};
  result = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside);
  say("type", result, type);
}

void allocate_plainly() {
  for (const std::size_t size_bytes :
       {std::size_t{1}, std::size_t{1000}, std::size_t{mib}, 3 * mib + 5, 64 * mib}) {
    CUdeviceptr pointer = 0;
    const CUresult result = cuMemAlloc_v2(&pointer, size_bytes);
    say("allocate", result, pointer % 512);
    use("use", pointer, size_bytes);
    ask(pointer, pointer + size_bytes / 2);
    say("free", cuMemFree_v2(pointer));
    say("free again", cuMemFree_v2(pointer));
  }
  std::array<CUdeviceptr, 3000> many{};
  CUresult worst = CUDA_SUCCESS;
  for (CUdeviceptr& pointer : many) worst = std::max(worst, cuMemAlloc_v2(&pointer, 700));
  for (const CUdeviceptr pointer : many) worst = std::max(worst, cuMemFree_v2(pointer));
  say("many small", worst);
  CUdeviceptr pointer = 0;
  say("nothing", cuMemAlloc_v2(&pointer, 0));
  say("nowhere", cuMemAlloc_v2(nullptr, 4096));
  say("too much", cuMemAlloc_v2(&pointer, std::size_t{1} << 45));
  say("free null", cuMemFree_v2(0));
  std::size_t pitch = 0;
  const CUresult pitched = cuMemAllocPitch_v2(&pointer, &pitch, 1001, 7, 4);
  say("pitch", pitched, pitch);
  use("use pitch", pointer, pitch * 7);
  say("free pitch", cuMemFree_v2(pointer));
  say("bad pitch", cuMemAllocPitch_v2(&pointer, &pitch, 1001, 7, 3));
}

void allocate_otherwise() {
  CUdeviceptr pointer = 0;
  CUresult result = cuMemAllocAsync(&pointer, 4 * mib, nullptr);
  say("async", result);
  if (result == CUDA_SUCCESS) use("use async", pointer, 4 * mib);
  if (result == CUDA_SUCCESS) say("free async", cuMemFreeAsync(pointer, nullptr));
  result = cuMemAllocManaged(&pointer, mib, 1);
  say("managed", result);
  if (result == CUDA_SUCCESS) say("free managed", cuMemFree_v2(pointer));
  void* host = nullptr;
  say("host", cuMemHostAlloc(&host, mib, 0));
  say("free host", cuMemFreeHost(host));
}

void map_in_pieces() {
  const CUmemAllocationProp device{
      CU_MEM_ALLOCATION_TYPE_PINNED, {}, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nullptr, {}};
  const CUmemAccessDesc all{device.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr base = 0;
  const CUresult reserved = cuMemAddressReserve(&base, 4 * granule, 0, 0, 0);
  say("reserve", reserved, base % granule);
  std::array<CUmemGenericAllocationHandle, 2> memory{};
  for (auto& handle : memory) say("create", cuMemCreate(&handle, granule, &device, 0));
  say("map", cuMemMap(base, granule, 0, memory[0], 0));
  say("map", cuMemMap(base + granule, granule, 0, memory[1], 0));
  say("map over", cuMemMap(base, granule, 0, memory[1], 0));
  say("rights of both", cuMemSetAccess(base, 2 * granule, &all, 1));
  use("use both", base, 2 * granule);
  say("rights of nothing", cuMemSetAccess(base + 2 * granule, granule, &all, 1));
  say("free too early", cuMemAddressFree(base, 4 * granule));
  say("unmap both", cuMemUnmap(base, 2 * granule));
  say("map again", cuMemMap(base + 2 * granule, granule, 0, memory[0], 0));
  say("rights again", cuMemSetAccess(base + 2 * granule, granule, &all, 1));
  unsigned char kept = 0;
  const CUresult read_back = cuMemcpyDtoH_v2(&kept, base + 2 * granule, 1);
  say("what it kept", read_back, kept);
  say("unmap", cuMemUnmap(base + 2 * granule, granule));
  for (const auto handle : memory) say("release", cuMemRelease(handle));
  say("give back", cuMemAddressFree(base, 4 * granule));
  say("give back again", cuMemAddressFree(base, 4 * granule));
}

/// What a context leaves behind goes with it, however it went.
void leave_to_primary(bool ask_for_it) {
  CUdeviceptr left = 0;
  for (const bool reset : {true, false}) {
    CUcontext primary = nullptr;
    say("retain", cuDevicePrimaryCtxRetain(&primary, 0));
    say("current", cuCtxSetCurrent(primary));
    if (ask_for_it && left != 0) say("free what has gone", cuMemFree_v2(left));
    for (int i = 0; i < 3; ++i) say("left behind", cuMemAlloc_v2(&left, 32 * mib));
    say("gone", reset ? cuDevicePrimaryCtxReset_v2(0) : cuDevicePrimaryCtxRelease_v2(0));
    say("gone altogether", reset ? cuDevicePrimaryCtxRelease_v2(0) : CUDA_SUCCESS);
  }
}

/// The process's own use of its address space.
void live_on() {
  void* mapped = mmap(nullptr, 256 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::printf("mmap %d\n", mapped != MAP_FAILED);
  munmap(mapped, 256 * mib);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execlp("true", "true", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", status);
}

/// Whether addresses of the process from [begin, end) are served by its UVM descriptor alone, without rights
/// for the CPU.
bool has_guard_ranges(CUdeviceptr begin = 0, CUdeviceptr end = ~CUdeviceptr{0}) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("---s") == std::string::npos || line.find("nvidia-uvm") == std::string::npos) continue;
    const CUdeviceptr first = std::stoull(line, nullptr, 16);
    const CUdeviceptr last = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    if (first < end && begin < last) return true;
  }
  return false;
}

/// What the driver refuses changes nothing of where the guard ranges lie.
void be_refused() {
  const CUmemAllocationProp device{
      CU_MEM_ALLOCATION_TYPE_PINNED, {}, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nullptr, {}};
  const CUmemAccessDesc all{device.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const CUmemAccessDesc none{device.location, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  CUdeviceptr base = 0;
  CUmemGenericAllocationHandle memory = 0;
  say("reserve", cuMemAddressReserve(&base, 4 * granule, 0, 0, 0));
  say("create", cuMemCreate(&memory, granule, &device, 0));
  say("map", cuMemMap(base, granule, 0, memory, 0));
  const auto look = [base](const char* after) {
    std::printf("%s: %d %d\n", after, has_guard_ranges(base, base + granule),
                has_guard_ranges(base + granule, base + 4 * granule));
  };
  look("without rights");
  say("rights", cuMemSetAccess(base, granule, &all, 1));
  look("with rights");
  say("too much", cuMemSetAccess(base, 2 * granule, &all, 1));
  look("rights refused");
  say("too early", cuMemAddressFree(base, 4 * granule));
  look("end refused");
  say("no rights", cuMemSetAccess(base, granule, &none, 1));
  look("rights taken");
  say("unmap", cuMemUnmap(base, granule));
  say("give back", cuMemAddressFree(base, 4 * granule));
  look("given back");
}

}  // namespace

/// Another process of the same program.
void be_shared_with(const CUipcMemHandle& handle) {
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  say("context", cuCtxCreate_v2(&context, 0, 0));
  say("open", cuIpcOpenMemHandle_v2(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  say("write", cuMemsetD8_v2(pointer, 0x77, mib));
  say("synchronize", cuCtxSynchronize());
  say("close", cuIpcCloseMemHandle(pointer));
}

/// As torch.multiprocessing does.
void share(const char* program) {
  CUdeviceptr pointer = 0;
  CUipcMemHandle handle{};
  say("allocate", cuMemAlloc_v2(&pointer, 4 * mib));
  const CUresult shared = cuIpcGetMemHandle(&handle, pointer);
  say("share", shared);
  std::fflush(stdout);
  if (shared != CUDA_SUCCESS) return;
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    for (const char byte : handle.reserved) {
      text.push_back(static_cast<char>('a' + (byte & 15)));
      text.push_back(static_cast<char>('a' + ((byte >> 4) & 15)));
    }
    execl(program, program, "open", text.c_str(), nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  unsigned char seen = 0;
  const CUresult result = cuMemcpyDtoH_v2(&seen, pointer + mib - 1, 1);
  say("what the other wrote", result, seen);
  const bool is_first = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == reinterpret_cast<void*>(&cuMemAlloc_v2);
  std::printf("the same function by name %d\n", is_first);
}

CUipcMemHandle handle_of(const std::string& text) {
  CUipcMemHandle handle{};
  for (std::size_t i = 0; i < sizeof(handle.reserved); ++i) {
    handle.reserved[i] = static_cast<char>((text.at(2 * i) - 'a') | ((text.at(2 * i + 1) - 'a') << 4));
  }
  return handle;
}

/// How many guard pages this process holds open.
int pages() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failed;
    if (std::filesystem::read_symlink(entry.path(), failed).string().starts_with("/memfd:firebreak-guard"))
      ++count;
  }
  return count;
}

void be_guarded(const char* who) {
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS ||
      cuMemAlloc_v2(&pointer, mib) != CUDA_SUCCESS || cuMemFree_v2(pointer) != CUDA_SUCCESS)
    std::printf("%s: no memory\n", who);
  std::printf("%s: guard ranges %d, pages %d, free again %d\n", who, has_guard_ranges(), pages(),
              static_cast<int>(cuMemFree_v2(pointer)));
  std::fflush(stdout);
}

template <class Run>
void in_child(const Run& run) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    run();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) std::printf("child %d\n", status);
}

/// A child before CUDA is started, and one afterwards, which cannot use it.
void fork_early_and_late() {
  if (dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == nullptr) std::printf("no cuMemAlloc\n");
  CUdeviceptr reserved = 0;
  (void)cuMemAddressReserve(&reserved, granule, 0, 0, 0);  // refused, and the guard is asked
  in_child([] { be_guarded("child"); });
  be_guarded("parent");
  in_child([] { std::printf("of the parent: guard ranges %d, pages %d\n", has_guard_ranges(), pages()); });
}

/// "early": reserves addresses before it has a context, and says in the end whether it has guard ranges.
/// "leave": also frees what went with a context. "refused": says where its guard ranges lie.
/// "share": shares memory with another process, which is started with "open" and the handle.
/// "fork": has children before and after it starts CUDA.
int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  const bool early = what == "early";
  if (what == "unheard" && std::freopen("/dev/null", "r", stderr) == nullptr) return 1;
  if (what == "fork") {
    fork_early_and_late();
    return 0;
  }
  CUcontext context = nullptr;
  CUdeviceptr reserved = 0;
  if (early) say("too early", cuMemAddressReserve(&reserved, granule, 0, 0, 0));
  say("init", cuInit(0));
  if (what == "open") {
    be_shared_with(handle_of(arguments[2]));
    return 0;
  }
  if (early) say("early", cuMemAddressReserve(&reserved, granule, 0, 0, 0));
  say("context", cuCtxCreate_v2(&context, 0, 0));
  if (early) std::printf("guard ranges %d\n", has_guard_ranges());
  if (what == "refused") be_refused();
  if (what == "share") share(arguments[0]);
  if (early || what == "refused" || what == "share") return 0;
  allocate_plainly();
  allocate_otherwise();
  map_in_pieces();
  live_on();
  CUdeviceptr left = 0;
  say("left to the context", cuMemAlloc_v2(&left, 8 * mib));
  say("synchronize", cuCtxSynchronize());
  say("destroy", cuCtxDestroy_v2(context));
  leave_to_primary(what == "leave");
  return 0;
}
