// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual/corner_program.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <initializer_list>
#include <set>

#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_green_contexts.h"
#include "shared/abi/cuda_launches.h"

namespace firebreak::test {
namespace {

/// `wait_for_word` ends once somebody stores 1 to its word.
constexpr const char* waiting_ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry wait_for_word(.param .u64 word)
{
  .reg .u64 %p;
  .reg .u32 %x;
  .reg .pred %more;
  ld.param.u64 %p, [word];
again:
  ld.volatile.global.u32 %x, [%p];
  setp.ne.u32 %more, %x, 1;
  @%more bra again;
  ret;
}

.visible .entry put(.param .u64 to, .param .u32 value)
{
  .reg .u64 %p;
  .reg .u32 %x;
  ld.param.u64 %p, [to];
  ld.param.u32 %x, [value];
  st.global.u32 [%p], %x;
  ret;
}
)";

constexpr unsigned int yielding_waits = 2;  // CU_CTX_SCHED_YIELD of cuda.h
constexpr unsigned int blocking_waits = 4;  // CU_CTX_SCHED_BLOCKING_SYNC of cuda.h
constexpr std::uint32_t to_put = 41;
constexpr std::size_t piece_bytes = std::size_t{4} << 20;

CUresult first_of(CUresult before, CUresult result) { return before == CUDA_SUCCESS ? result : before; }

/// What functions have answered, in their order.
unsigned long long as_one_number(std::initializer_list<int> answers) {
  constexpr int above_all = 1000;
  unsigned long long number = 0;
  for (const int answer : answers) number = number * above_all + static_cast<unsigned int>(answer);
  return number;
}

/// Returns once that thread of ours stands in a call of the kernel's.
void wait_until_asleep(pid_t thread) {
  for (char state = 'R'; state != 'S';) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end != std::string::npos && name_end + 2 < line.size()) state = line[name_end + 2];
    std::this_thread::yield();
  }
}

}  // namespace

CornerProgram::~CornerProgram() {
  if (feeding_.joinable()) feeding_.join();
}

std::pair<CUresult, unsigned long long> CornerProgram::run(const std::string& what, std::istream& words) {
  unsigned int times = 0;
  if (what == "init") return {driver_.cuInit(0), 0};
  if (what == "init_limited") return {init_limited(), 0};
  if (what == "before_init") return {before_init(), 0};
  if (what == "ask_for_newer") return ask_for_newer();
  if (what == "use_newer") return use_newer();
  if (what == "ask_for_unknown") return ask_for_unknown();
  if (what == "allocate_too_much") return {allocate_too_much(), 0};
  if (what == "retain_release" && words >> times) return {retain_release(times), 0};
  if (what == "end_one_of_two") return {end_one_of_two(), 0};
  if (const CUresult prepared = prepare(); prepared != CUDA_SUCCESS) return {prepared, 0};
  if (what == "pop_all") return {pop_all(), 0};
  if (what == "use_ended") return use_ended();
  if (what == "misuse") return misuse();
  if (what == "record_nowhere") return {record_nowhere(), 0};
  if (what == "time_nowhere") return {time_nowhere(), 0};
  if (what == "fork") return {fork(), 0};
  if (what == "capture_and_free" && words >> times) return {capture_and_free(times), 0};
  if (what == "free_twice") return {free_twice(), 0};
  if (what == "buffer_ids") return buffer_ids();
  if (what == "old_names") return {old_names(), 0};
  if (what == "set_attributes") return {set_attributes(), 0};
  if (what == "attributes") return attributes();
  if (what == "set_flags") return {driver_.cuDevicePrimaryCtxSetFlags_v2(0, yielding_waits), 0};
  if (what == "flags") return flags();
  if (what == "set_synchronous") return {set_synchronous(), 0};
  if (what == "detach") return {detach(), 0};
  if (what == "launch_on_each_device") return launch_on_each_device();
  if (what == "launch_as_before") return launch_as_before();
  if (what == "give_symbols") return {give_symbols(), 0};
  if (what == "copy_between_contexts") return copy_between_contexts();
  if (what == "cancel") return cancel();
  if (what == "green") return green();
  if (what == "feed_after" && words >> times) return {feed_after(times), 0};
  return {CUDA_ERROR_UNKNOWN, 0};
}

CUresult CornerProgram::prepare() {
  if (context_ != nullptr) return CUDA_SUCCESS;
  CUmodule module = nullptr;
  CUresult result = driver_.cuCtxGetCurrent(&context_);
  result = first_of(result, driver_.cuModuleLoadData(&module, waiting_ptx));
  result = first_of(result, driver_.cuModuleGetFunction(&wait_, module, "wait_for_word"));
  result = first_of(result, driver_.cuModuleGetFunction(&put_, module, "put"));
  return first_of(result, driver_.cuMemHostAlloc(&host_, 4096, 0));
}

CUresult CornerProgram::init_limited() {
  const rlimit limit{std::size_t{4} << 30, std::size_t{4} << 30};
  return ::setrlimit(RLIMIT_AS, &limit) != 0 ? CUDA_ERROR_OPERATING_SYSTEM : driver_.cuInit(0);
}

CUresult CornerProgram::before_init() {
  CUcontext context = nullptr;
  const std::array answers{
      driver_.cuCtxGetCurrent(&context),    driver_.cuCtxSetCurrent(nullptr),
      driver_.cuCtxPushCurrent_v2(nullptr), driver_.cuCtxPopCurrent_v2(&context),
      driver_.cuCtxDestroy_v2(nullptr),     driver_.cuMemFree_v2(0),
  };
  for (const CUresult answer : answers) {
    if (answer != CUDA_ERROR_NOT_INITIALIZED) return CUDA_ERROR_ILLEGAL_STATE;
  }
  return driver_.cuInit(0);
}

CUresult CornerProgram::start_waiting(CUstream stream) {
  word().store(0);
  auto address = reinterpret_cast<CUdeviceptr>(host_);
  std::array<void*, 1> parameters{&address};
  return driver_.cuLaunchKernel(wait_, 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr);
}

/// In a mode that forbids other threads nothing.
CUresult CornerProgram::capture_and_free(unsigned int times) {
  std::atomic<bool> is_over{false};
  CUresult captured = CUDA_SUCCESS;
  std::thread capturing([&] {
    captured = driver_.cuCtxSetCurrent(context_);
    CUstream stream = nullptr;
    captured = first_of(captured, driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr memory = 0;
    captured = first_of(captured, driver_.cuMemAlloc_v2(&memory, 4096));
    for (unsigned int i = 0; i < times && captured == CUDA_SUCCESS; ++i) {
      CUgraph graph = nullptr;
      captured = driver_.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      for (int node = 0; node < 8 && captured == CUDA_SUCCESS; ++node)
        captured = driver_.cuMemsetD32Async(memory, i, 1024, stream);
      captured = first_of(captured, driver_.cuStreamEndCapture(stream, &graph));
      captured = first_of(captured, driver_.cuGraphDestroy(graph));
    }
    is_over.store(true);
  });
  CUresult freed = CUDA_SUCCESS;
  while (!is_over.load() && freed == CUDA_SUCCESS) {
    CUdeviceptr memory = 0;
    freed = driver_.cuMemAlloc_v2(&memory, piece_bytes);
    freed = first_of(freed, driver_.cuMemFree_v2(memory));
  }
  capturing.join();
  return first_of(captured, freed);
}

std::pair<CUresult, unsigned long long> CornerProgram::ask_for_newer() {
  constexpr int version = 13020;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  void* function = nullptr;
  const CUresult result = driver_.cuGetProcAddress_v2("cuMemGetInfo", &function, version, 0, &found);
  newer_ = reinterpret_cast<NewerMemoryInfo>(function);
  return {result, found == CU_GET_PROC_ADDRESS_SUCCESS && function != nullptr ? 1ULL : 0ULL};
}

std::pair<CUresult, unsigned long long> CornerProgram::use_newer() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  int devices = 0;
  const CUresult result = newer_(&free_bytes, &total_bytes, &devices);
  return {result, static_cast<unsigned long long>(devices)};
}

std::pair<CUresult, unsigned long long> CornerProgram::ask_for_unknown() {
  constexpr int version = 13020;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  void* function = nullptr;
  const CUresult result = driver_.cuGetProcAddress_v2("cuNewerThanAll", &function, version, 0, &found);
  return {result, found == CU_GET_PROC_ADDRESS_SUCCESS && function != nullptr ? 1ULL : 0ULL};
}

CUresult CornerProgram::allocate_too_much() {
  CUdeviceptr memory = 0;
  return driver_.cuMemAlloc_v2(&memory, std::size_t{2} << 30);
}

CUresult CornerProgram::free_twice() {
  CUstream stream = nullptr;
  CUresult result = driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  CUdeviceptr memory = 0;
  result = first_of(result, driver_.cuMemAllocAsync(&memory, piece_bytes, stream));
  result = first_of(result, driver_.cuMemFreeAsync(memory, stream));
  result = first_of(result, driver_.cuStreamSynchronize(stream));
  if (result != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
  return driver_.cuMemFreeAsync(memory, stream);
}

CUresult CornerProgram::pop_all() {
  std::array<CUcontext, 2> made{};
  CUcontext before = nullptr;
  CUcontext popped = nullptr;
  CUresult result = driver_.cuCtxPopCurrent_v2(&before);
  for (CUcontext& each : made) result = first_of(result, driver_.cuCtxCreate_v2(&each, 0, 0));
  for (std::size_t i = 0; i < made.size(); ++i)
    result = first_of(result, driver_.cuCtxPopCurrent_v2(&popped));
  if (result != CUDA_SUCCESS) return result;
  CUstream stream = nullptr;
  const CUresult answered = driver_.cuStreamCreate(&stream, 0);
  for (const CUcontext each : made) result = first_of(result, driver_.cuCtxDestroy_v2(each));
  result = first_of(result, driver_.cuCtxPushCurrent_v2(before));
  return first_of(result, answered);
}

/// Whoever counts the work has seen it after the pauses.
CUresult CornerProgram::end_one_of_two() {
  constexpr std::chrono::milliseconds long_enough{200};
  CUcontext primary = nullptr;
  CUcontext other = nullptr;
  CUcontext popped = nullptr;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUresult result = driver_.cuDevicePrimaryCtxRetain(&primary, 0);
  result = first_of(result, driver_.cuCtxSetCurrent(primary));
  result = first_of(result, prepare());
  result = first_of(result, driver_.cuCtxCreate_v2(&other, 0, 0));
  result = first_of(result, driver_.cuMemAlloc_v2(&memory, 4096));
  result = first_of(result, driver_.cuMemsetD32Async(memory, 1, 16, nullptr));
  result = first_of(result, driver_.cuCtxSynchronize());
  std::this_thread::sleep_for(long_enough);
  result = first_of(result, driver_.cuCtxPopCurrent_v2(&popped));
  result = first_of(result, driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  result = first_of(result, start_waiting(stream));
  if (result != CUDA_SUCCESS) return result;
  std::this_thread::sleep_for(long_enough);
  result = driver_.cuCtxDestroy_v2(other);
  word().store(1);
  return first_of(result, driver_.cuStreamSynchronize(stream));
}

std::pair<CUresult, unsigned long long> CornerProgram::use_ended() {
  CUcontext below = nullptr;
  CUcontext above = nullptr;
  CUcontext popped = nullptr;
  CUresult result = driver_.cuCtxCreate_v2(&below, 0, 0);
  result = first_of(result, driver_.cuCtxCreate_v2(&above, 0, 0));
  result = first_of(result, driver_.cuCtxDestroy_v2(below));
  result = first_of(result, driver_.cuCtxPopCurrent_v2(&popped));
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  const unsigned long long answers = as_one_number(
      {driver_.cuMemAlloc_v2(&memory, 4096), driver_.cuStreamCreate(&stream, 0), driver_.cuCtxSynchronize()});
  result = first_of(result, driver_.cuCtxPopCurrent_v2(&popped));
  return {first_of(result, driver_.cuCtxDestroy_v2(above)), answers};
}

std::pair<CUresult, CUstream> CornerProgram::ended_stream() {
  CUstream stream = nullptr;
  const CUresult result = driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  return {first_of(result, driver_.cuStreamDestroy_v2(stream)), stream};
}

std::pair<CUresult, unsigned long long> CornerProgram::misuse() {
  constexpr unsigned int unknown_flags = 0x10;
  auto [result, stream] = ended_stream();
  CUdeviceptr memory = 0;
  void* host = nullptr;
  unsigned int flags = 0;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  result = first_of(result, driver_.cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_WRITECOMBINED));
  result = first_of(result, driver_.cuMemHostGetFlags(&flags, host));
  result = first_of(result, driver_.cuModuleLoadData(&module, waiting_ptx));
  const unsigned long long answers = as_one_number(
      {static_cast<int>(flags), driver_.cuMemAllocAsync(&memory, 4096, stream),
       driver_.cuMemHostUnregister(host), driver_.cuModuleGetFunction(&function, module, nullptr),
       driver_.cuMemFreeHost(host), driver_.cuMemHostAlloc(&host, 4096, unknown_flags)});
  return {result, answers};
}

CUresult CornerProgram::record_nowhere() {
  auto [result, stream] = ended_stream();
  result = first_of(result, driver_.cuEventCreate(&nowhere_, CU_EVENT_DEFAULT));
  return first_of(result, driver_.cuEventRecord(nowhere_, stream));
}

CUresult CornerProgram::time_nowhere() {
  float milliseconds = 0;
  return driver_.cuEventElapsedTime(&milliseconds, nowhere_, nowhere_);
}

/// It has the parent's descriptors, as a worker of a data loader has.
CUresult CornerProgram::fork() {
  const pid_t child = ::fork();
  if (child < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (child != 0) return CUDA_SUCCESS;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (true) ::pause();
}

CUresult CornerProgram::feed_after(unsigned int calls) {
  CUstream stream = nullptr;
  CUresult result = driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  result = first_of(result, start_waiting(stream));
  if (result != CUDA_SUCCESS) return result;
  feeding_ = std::thread([this, calls] {
    CUresult fed = driver_.cuCtxSetCurrent(context_);
    for (unsigned int i = 0; i < calls && fed == CUDA_SUCCESS; ++i) {
      std::size_t free_bytes = 0;
      std::size_t total_bytes = 0;
      fed = driver_.cuMemGetInfo_v2(&free_bytes, &total_bytes);
    }
    word().store(1);
  });
  return CUDA_SUCCESS;
}

CUresult CornerProgram::retain_release(unsigned int times) {
  CUresult result = CUDA_SUCCESS;
  for (unsigned int i = 0; i < times && result == CUDA_SUCCESS; ++i) {
    CUcontext primary = nullptr;
    CUdeviceptr memory = 0;
    CUstream stream = nullptr;
    result = driver_.cuDevicePrimaryCtxRetain(&primary, 0);
    result = first_of(result, driver_.cuCtxSetCurrent(primary));
    result = first_of(result, driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    result = first_of(result, driver_.cuMemAlloc_v2(&memory, 2 * piece_bytes));
    result = first_of(result, driver_.cuMemsetD32Async(memory, i, 16, stream));
    result = first_of(result, driver_.cuCtxSetCurrent(nullptr));
    result = first_of(result, driver_.cuDevicePrimaryCtxRelease_v2(0));
  }
  return result;
}

std::pair<CUresult, unsigned long long> CornerProgram::green() {
  CUdevResource all{};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  CUresult result = driver_.cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
  result = first_of(result, driver_.cuDevResourceGenerateDesc(&description, &all, 1));
  result = first_of(result, driver_.cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  result = first_of(result, driver_.cuCtxFromGreenCtx(&context, green));
  result = first_of(result, driver_.cuCtxPushCurrent_v2(context));
  CUdeviceptr memory = 0;
  std::uint32_t stored = 0;
  result = first_of(result, driver_.cuMemAlloc_v2(&memory, 4096));
  result = first_of(result, driver_.cuMemsetD32_v2(memory, 7, 1024));
  result = first_of(result, driver_.cuMemcpyDtoH_v2(&stored, memory, sizeof stored));
  result = first_of(result, driver_.cuMemFree_v2(memory));
  result = first_of(result, driver_.cuCtxPopCurrent_v2(&context));
  result = first_of(result, driver_.cuGreenCtxDestroy(green));
  if (result == CUDA_SUCCESS && driver_.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS)
    result = CUDA_ERROR_CONTEXT_ALREADY_CURRENT;  // though it has ended
  return {result, stored};
}

std::pair<CUresult, unsigned long long> CornerProgram::cancel() {
  struct Shared {
    CornerProgram& all;
    CUstream stream = nullptr;
    std::atomic<pid_t> waits{0};
  } shared{*this};
  CUresult result = driver_.cuStreamCreate(&shared.stream, CU_STREAM_NON_BLOCKING);
  result = first_of(result, start_waiting(shared.stream));
  if (result != CUDA_SUCCESS) return {result, 0};
  const auto run = [](void* given) -> void* {
    auto& its = *static_cast<Shared*>(given);
    its.all.driver_.cuCtxSetCurrent(its.all.context_);
    its.waits.store(::gettid());
    its.all.driver_.cuStreamSynchronize(its.stream);
    pthread_testcancel();
    return nullptr;
  };
  pthread_t waiting{};
  if (pthread_create(&waiting, nullptr, run, &shared) != 0) return {CUDA_ERROR_UNKNOWN, 0};
  while (shared.waits.load() == 0) std::this_thread::yield();
  wait_until_asleep(shared.waits.load());
  pthread_cancel(waiting);
  word().store(1);
  void* ended_of = nullptr;
  pthread_join(waiting, &ended_of);
  return {driver_.cuStreamSynchronize(shared.stream), ended_of == PTHREAD_CANCELED ? 1ULL : 0ULL};
}

CUresult CornerProgram::old_names() {
  CUcontext made = nullptr;
  CUcontext popped = nullptr;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUresult result = driver_.cuCtxCreate(&made, 0, 0);
  result = first_of(result, driver_.cuMemAlloc_v2(&memory, 4096));
  result = first_of(result, driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  result = first_of(result, driver_.cuEventCreate(&event, 0));
  result = first_of(result, driver_.cuMemsetD32Async(memory, 1, 1024, stream));
  result = first_of(result, driver_.cuStreamSynchronize(stream));
  result = first_of(result, driver_.cuEventDestroy(event));
  result = first_of(result, driver_.cuStreamDestroy(stream));
  result = first_of(result, driver_.cuCtxPopCurrent(&popped));
  if (result == CUDA_SUCCESS && popped != made) result = CUDA_ERROR_INVALID_CONTEXT;
  result = first_of(result, driver_.cuCtxPushCurrent(made));
  result = first_of(result, driver_.cuCtxDestroy(made));
  CUcontext now = nullptr;
  result = first_of(result, driver_.cuCtxGetCurrent(&now));
  return result == CUDA_SUCCESS && now != context_ ? CUDA_ERROR_INVALID_CONTEXT : result;
}

namespace {

constexpr int stream_priority = -3;

}  // namespace

CUresult CornerProgram::set_attributes() {
  CUstreamAttrValue value{};
  value.priority = stream_priority;
  CUresult result = driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
  result = first_of(result, driver_.cuStreamSetAttribute(stream_, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  return first_of(result, driver_.cuCtxSetFlags(blocking_waits));
}

std::pair<CUresult, unsigned long long> CornerProgram::attributes() {
  CUstreamAttrValue value{};
  unsigned int flags = 0;
  CUresult result = driver_.cuStreamGetAttribute(stream_, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
  result = first_of(result, driver_.cuCtxGetFlags(&flags));
  return {result, 100ULL * flags + static_cast<unsigned int>(-value.priority)};
}

std::pair<CUresult, unsigned long long> CornerProgram::flags() {
  unsigned int flags = 0;
  const CUresult result = driver_.cuCtxGetFlags(&flags);
  return {result, flags};
}

CUresult CornerProgram::set_synchronous() {
  CUdeviceptr memory = 0;
  const unsigned int wanted = 1;
  const CUresult result = driver_.cuMemAlloc_v2(&memory, 4096);
  return first_of(result, driver_.cuPointerSetAttribute(&wanted, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
}

/// How many different ones it saw: of two allocations, and of one that came when one of them had gone.
std::pair<CUresult, unsigned long long> CornerProgram::buffer_ids() {
  std::set<unsigned long long> ids;
  std::array<CUdeviceptr, 2> memory{};
  const auto note = [&](CUdeviceptr address) {
    unsigned long long id = 0;
    const CUresult result = driver_.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address + 8);
    ids.insert(id);
    return result;
  };
  CUresult result = CUDA_SUCCESS;
  for (CUdeviceptr& each : memory) {
    result = first_of(result, driver_.cuMemAlloc_v2(&each, 4096));
    result = first_of(result, note(each));
  }
  result = first_of(result, driver_.cuMemFree_v2(memory[1]));
  result = first_of(result, driver_.cuMemAlloc_v2(&memory[1], 4096));
  result = first_of(result, note(memory[1]));
  result = first_of(result, note(memory[0]));
  return {result, ids.size()};
}

/// Who has detached last is in no such context any more.
CUresult CornerProgram::detach() {
  CUcontext made = nullptr;
  CUcontext now = nullptr;
  CUdeviceptr memory = 0;
  CUresult result = driver_.cuCtxCreate(&made, 0, 0);
  result = first_of(result, driver_.cuMemAlloc_v2(&memory, 4096));
  result = first_of(result, driver_.cuCtxDetach(made));
  result = first_of(result, driver_.cuCtxGetCurrent(&now));
  return result == CUDA_SUCCESS && now != context_ ? CUDA_ERROR_INVALID_CONTEXT : result;
}

std::pair<CUresult, unsigned long long> CornerProgram::launch_on_each_device() {
  CUdeviceptr memory = 0;
  std::uint32_t stored = 0;
  CUresult result = CUDA_SUCCESS;
  if (stream_ == nullptr) result = driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
  result = first_of(result, driver_.cuMemAlloc_v2(&memory, 4096));
  std::uint32_t value = to_put;
  std::array<void*, 2> parameters{&memory, &value};
  CUDA_LAUNCH_PARAMS launch{put_, 1, 1, 1, 1, 1, 1, 0, stream_, parameters.data()};
  result = first_of(result, driver_.cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
  result = first_of(result, driver_.cuStreamSynchronize(stream_));
  result = first_of(result, driver_.cuMemcpyDtoH_v2(&stored, memory, sizeof stored));
  return {first_of(result, driver_.cuMemFree_v2(memory)), stored};
}

std::pair<CUresult, unsigned long long> CornerProgram::launch_as_before() {
  CUdeviceptr memory = 0;
  std::uint32_t stored = 0;
  CUresult result = driver_.cuMemAlloc_v2(&memory, 4096);
  result = first_of(result, driver_.cuFuncSetBlockShape(put_, 1, 1, 1));
  result = first_of(result, driver_.cuParamSetv(put_, 0, &memory, sizeof memory));
  result = first_of(result, driver_.cuParamSeti(put_, sizeof memory, to_put));
  result = first_of(result, driver_.cuParamSetSize(put_, sizeof memory + sizeof to_put));
  result = first_of(result, driver_.cuLaunchGrid(put_, 1, 1));
  result = first_of(result, driver_.cuMemcpyDtoH_v2(&stored, memory, sizeof stored));
  return {first_of(result, driver_.cuMemFree_v2(memory)), stored};
}

CUresult CornerProgram::give_symbols() {
  CUmodule module = nullptr;
  const char* name = "somewhere";
  void* address = host_;
  std::array<CUjit_option, 3> options{CU_JIT_GLOBAL_SYMBOL_NAMES, CU_JIT_GLOBAL_SYMBOL_ADDRESSES,
                                      CU_JIT_GLOBAL_SYMBOL_COUNT};
  std::array<void*, 3> values{&name, &address, reinterpret_cast<void*>(std::uintptr_t{1})};
  return driver_.cuModuleLoadDataEx(&module, waiting_ptx, options.size(), options.data(), values.data());
}

std::pair<CUresult, unsigned long long> CornerProgram::copy_between_contexts() {
  CUdeviceptr memory = 0;
  std::uint32_t copied = 0;
  CUresult result = driver_.cuMemAlloc_v2(&memory, 4096);
  result = first_of(result, driver_.cuMemsetD32_v2(memory, 23, 1));
  CUDA_MEMCPY3D_PEER copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory;
  copy.srcContext = context_;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory + 2048;
  copy.dstContext = context_;
  copy.WidthInBytes = sizeof copied;
  copy.Height = 1;
  copy.Depth = 1;
  result = first_of(result, driver_.cuMemcpy3DPeer(&copy));
  result = first_of(result, driver_.cuMemcpyDtoH_v2(&copied, memory + 2048, sizeof copied));
  return {first_of(result, driver_.cuMemFree_v2(memory)), copied};
}

}  // namespace firebreak::test
