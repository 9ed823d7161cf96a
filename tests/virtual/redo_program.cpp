// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual/redo_program.h"

#include <algorithm>
#include <atomic>
#include <sstream>

#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_graphs.h"

namespace firebreak::test {
namespace {

/// `weave` writes what it makes of other memory, `knead` what it makes of its own; `gather` goes where memory
/// says. Each thread has one word.
constexpr const char* redo_ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry weave(.param .u64 to, .param .u64 from, .param .u32 count, .param .u32 value)
{
  .reg .u64 %to, %from, %at;
  .reg .u32 %i, %n, %v, %x, %t;
  .reg .pred %over;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u32 %n, [count];
  ld.param.u32 %v, [value];
  mov.u32 %i, %ctaid.x;
  mov.u32 %t, %ntid.x;
  mov.u32 %x, %tid.x;
  mad.lo.u32 %i, %i, %t, %x;
  setp.ge.u32 %over, %i, %n;
  @%over bra done;
  mul.wide.u32 %at, %i, 4;
  add.u64 %from, %from, %at;
  add.u64 %to, %to, %at;
  ld.global.u32 %x, [%from];
  mad.lo.u32 %x, %x, 1664525, %v;
  xor.b32 %x, %x, %i;
  st.global.u32 [%to], %x;
done:
  ret;
}

.visible .entry knead(.param .u64 to, .param .u64 from, .param .u32 count, .param .u32 value)
{
  .reg .u64 %to, %from, %at;
  .reg .u32 %i, %n, %v, %x, %t;
  .reg .pred %over;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u32 %n, [count];
  ld.param.u32 %v, [value];
  mov.u32 %i, %ctaid.x;
  mov.u32 %t, %ntid.x;
  mov.u32 %x, %tid.x;
  mad.lo.u32 %i, %i, %t, %x;
  setp.ge.u32 %over, %i, %n;
  @%over bra done;
  mul.wide.u32 %at, %i, 4;
  add.u64 %from, %from, %at;
  add.u64 %to, %to, %at;
  ld.global.u32 %x, [%from];
  ld.global.u32 %t, [%to];
  mad.lo.u32 %x, %x, 22695477, %t;
  add.u32 %x, %x, %v;
  st.global.u32 [%to], %x;
done:
  ret;
}

.visible .entry gather(.param .u64 to, .param .u64 from, .param .u32 count, .param .u32 value)
{
  .reg .u64 %to, %from, %at;
  .reg .u32 %i, %n, %x, %t;
  .reg .pred %over;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u32 %n, [count];
  mov.u32 %i, %ctaid.x;
  mov.u32 %t, %ntid.x;
  mov.u32 %x, %tid.x;
  mad.lo.u32 %i, %i, %t, %x;
  setp.ge.u32 %over, %i, %n;
  @%over bra done;
  mul.wide.u32 %at, %i, 4;
  add.u64 %to, %to, %at;
  add.u64 %at, %from, %at;
  ld.global.u32 %x, [%at];
  popc.b32 %x, %x;
  mul.wide.u32 %at, %x, 4;
  add.u64 %from, %from, %at;
  ld.global.u32 %x, [%from];
  st.global.u32 [%to], %x;
done:
  ret;
}

.visible .entry slowly(.param .u64 to, .param .u64 from, .param .u32 count, .param .u32 value)
{
  .reg .u64 %to, %from;
  .reg .u32 %i, %n, %v, %x;
  .reg .pred %more;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u32 %n, [count];
  ld.param.u32 %v, [value];
  ld.global.u32 %x, [%from];
  mov.u32 %i, 0;
again:
  mad.lo.u32 %x, %x, 1664525, %v;
  add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, %n;
  @%more bra again;
  st.global.u32 [%to], %x;
  ret;
}
)";

constexpr unsigned int block_threads = 64;
constexpr std::uint32_t very_long = 16'000'000;
constexpr std::size_t mapped_bytes = std::size_t{2} << 20;  // what is mapped at once

}  // namespace

CUresult RedoProgram::prepare() {
  if (module_ != nullptr) return CUDA_SUCCESS;
  CUresult done = driver_.cuModuleLoadData(&module_, redo_ptx);
  for (CUstream& stream : streams_)
    done = first_of(done, driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  done = first_of(done, driver_.cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
  for (Host& host : hosts_) {
    void* memory = nullptr;
    done = first_of(done, driver_.cuMemHostAlloc(&memory, buffer_bytes, 0));
    host = static_cast<Host>(memory);
    if (host != nullptr) std::fill_n(host, word_count, 0U);
  }
  for (std::size_t i = 0; i < buffers; ++i) {
    done = first_of(done, driver_.cuMemAlloc_v2(&memory_[i], buffer_bytes));
    done = first_of(done, driver_.cuMemsetD32_v2(memory_[i], static_cast<unsigned int>(i + 1), word_count));
  }
  return first_of(done, driver_.cuCtxSynchronize());
}

std::pair<CUresult, unsigned long long> RedoProgram::run(const std::string& what, std::istream& words) {
  if (const CUresult prepared = prepare(); prepared != CUDA_SUCCESS) return {prepared, 0};
  std::string how;
  if (what == "give") {
    words >> how;
    return {give(how), 0};
  }
  if (what == "give_many") {
    unsigned int times = 0;
    words >> times;
    CUresult done = CUDA_SUCCESS;
    for (unsigned int i = 0; i < times && done == CUDA_SUCCESS; ++i)
      done = driver_.cuMemsetD32Async(memory_[3], 11, 1, streams_[stream_]);
    return {done, 0};
  }
  if (what == "prepare") return {CUDA_SUCCESS, 0};
  if (what == "wait") return {wait(), 0};
  if (what == "query") {
    words >> how;
    return {is_over(how == "upload" ? 0 : 1) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY, 0};
  }
  if (what == "digest") return digest();
  std::uint64_t seed = 0;
  unsigned int operations = 0;
  words >> seed >> operations;
  return run_random(seed, operations);
}

CUresult RedoProgram::launch(const char* kernel, std::size_t to, std::size_t from, std::uint32_t count,
                             std::uint32_t value) {
  CUfunction function = nullptr;
  const CUresult found = driver_.cuModuleGetFunction(&function, module_, kernel);
  if (found != CUDA_SUCCESS) return found;
  std::array<void*, 4> parameters{&memory_.at(to), &memory_.at(from), &count, &value};
  return driver_.cuLaunchKernel(function, word_count / block_threads, 1, 1, block_threads, 1, 1, 0,
                                streams_[stream_], parameters.data(), nullptr);
}

/// slowly: for a second, and it may be done again. weave, knead, gather: what these kernels are.
/// weave-beyond: far behind its memory, so that it may be what faulted. over: it overwrites what the one
/// before has read. download, upload: to and from pinned memory. download-over: to that which upload copies
/// from. other-stream: it waits for nothing. upload-of-the-moment: of memory that changes as soon as the call
/// has returned. upload-of-nothing: from nowhere, which the driver refuses. copy-of-constants: of variables.
/// graph:A+B: a graph of A and B, which replay launches; update:KERNEL: from now on it is of that kernel.
/// time, see-time: events that are seen by the time between them. other-code: in place of what is loaded.
/// map, map-anew: memory where it was mapped, or other memory there.
CUresult RedoProgram::give(const std::string& what) {
  const CUstream stream = streams_[stream_];
  if (what == "slowly") {
    std::uint32_t count = very_long;
    std::uint32_t value = 3;
    CUfunction function = nullptr;
    const CUresult found = driver_.cuModuleGetFunction(&function, module_, "slowly");
    std::array<void*, 4> parameters{&memory_[0], &memory_[1], &count, &value};
    return first_of(
        found, driver_.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr));
  }
  if (what == "weave") return launch("weave", 2, 1, word_count, 7);
  if (what == "knead") return launch("knead", 2, 1, word_count, 7);
  if (what == "gather") return launch("gather", 2, 1, word_count, 7);
  if (what == "weave-beyond") {
    constexpr CUdeviceptr far = CUdeviceptr{1} << 36U;
    memory_[3] += far;
    const CUresult launched = launch("weave", 3, 1, word_count, 7);
    memory_[3] -= far;
    return launched;
  }
  if (what == "over")
    return first_of(launch("weave", 2, 1, word_count, 7), launch("weave", 1, 3, word_count, 9));
  if (what == "fill") return driver_.cuMemsetD32Async(memory_[3], 11, word_count, stream);
  if (what == "copy") return driver_.cuMemcpyDtoDAsync_v2(memory_[3], memory_[2], buffer_bytes, stream);
  if (what == "download") return driver_.cuMemcpyDtoHAsync_v2(hosts_[1], memory_[2], buffer_bytes, stream);
  if (what == "upload") return driver_.cuMemcpyHtoDAsync_v2(memory_[3], hosts_[0], buffer_bytes, stream);
  if (what == "upload-of-nothing")
    return driver_.cuMemcpyHtoD_v2(memory_[3], nullptr, 4096) == CUDA_ERROR_INVALID_VALUE
               ? CUDA_SUCCESS
               : CUDA_ERROR_UNKNOWN;
  if (what == "upload-of-the-moment") {
    pageable_.fill(23);
    const CUresult copied =
        driver_.cuMemcpyHtoDAsync_v2(memory_[3], pageable_.data(), sizeof pageable_, stream);
    pageable_.fill(29);
    return copied;
  }
  if (what == "event") return driver_.cuEventRecord(event_, stream);
  if (what == "see-event") return driver_.cuEventSynchronize(event_);
  if (what == "download-over")
    return driver_.cuMemcpyDtoHAsync_v2(hosts_[0], memory_[2], buffer_bytes, stream);
  if (what == "change-stream") return change_stream();
  if (what == "other-stream") {
    stream_ = 1 - stream_;
    return CUDA_SUCCESS;
  }
  if (what == "time" || what == "see-time") return time(what == "time");
  if (what == "other-code") return load_other_code();
  if (what == "copy-of-constants") return copy_constants();
  if (what == "map") return map();
  if (what == "map-anew") return map_anew();
  if (what == "fill-mapped") return driver_.cuMemsetD32Async(mapped_, 11, word_count, stream);
  if (what == "fill-of-the-host")
    return driver_.cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(hosts_[1]), 5, word_count, stream);
  if (what.starts_with("graph:")) return capture(what.substr(what.find(':') + 1));
  if (what.starts_with("update:")) return update(what.substr(what.find(':') + 1).c_str());
  if (what == "replay") return driver_.cuGraphLaunch(graph_, stream);
  if (what == "end-graph") return end_graph();
  if (what == "callback")
    return driver_.cuLaunchHostFunc(
        stream, [](void*) {}, nullptr);
  return CUDA_ERROR_INVALID_VALUE;
}

/// Two events around nothing, or until the time between them is known.
CUresult RedoProgram::time(bool begins) {
  if (!begins) {
    float milliseconds = 0;
    CUresult asked = CUDA_SUCCESS;
    do {
      asked = driver_.cuEventElapsedTime(&milliseconds, timed_[0], timed_[1]);
    } while (asked == CUDA_ERROR_NOT_READY);
    return asked;
  }
  CUresult done = CUDA_SUCCESS;
  for (CUevent& event : timed_) {
    if (event == nullptr) done = first_of(done, driver_.cuEventCreate(&event, CU_EVENT_DEFAULT));
    done = first_of(done, driver_.cuEventRecord(event, streams_[stream_]));
  }
  return done;
}

/// The same kernels, but `weave` makes something else, and mostly the driver calls it as it did before.
CUresult RedoProgram::load_other_code() {
  constexpr int tries_max = 1000;
  std::string other = redo_ptx;
  const std::string factor = "%x, %x, 1664525";
  other.replace(other.find(factor), factor.size(), "%x, %x, 1664527");
  CUfunction before = nullptr;
  CUfunction now = nullptr;
  CUresult done = driver_.cuModuleGetFunction(&before, module_, "weave");
  for (int i = 0; i < tries_max && done == CUDA_SUCCESS; ++i) {
    done = first_of(done, driver_.cuModuleUnload(module_));
    done = first_of(done, driver_.cuModuleLoadData(&module_, other.c_str()));
    done = first_of(done, driver_.cuModuleGetFunction(&now, module_, "weave"));
    if (now == before) return done;
  }
  return done;
}

/// From where the GPU has a variable that no kernel changes.
CUresult RedoProgram::copy_constants() {
  constexpr const char* constants_ptx =
      ".version 7.0\n.target sm_70\n.address_size 64\n.const .align 4 .u32 table[4] = {5, 6, 7, 8};\n"
      ".visible .entry nothing()\n{\n  ret;\n}\n";
  CUmodule constants = nullptr;
  CUdeviceptr table = 0;
  std::size_t size_bytes = 0;
  CUresult done = driver_.cuModuleLoadData(&constants, constants_ptx);
  done = first_of(done, driver_.cuModuleGetGlobal_v2(&table, &size_bytes, constants, "table"));
  return first_of(done, driver_.cuMemcpyDtoDAsync_v2(memory_[3], table, size_bytes, streams_[stream_]));
}

/// Memory that the program maps itself, and other memory that may come there.
CUresult RedoProgram::map() {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUresult done = driver_.cuMemAddressReserve(&mapped_, mapped_bytes, 0, 0, 0);
  for (auto& memory : mappable_)
    done = first_of(done, driver_.cuMemCreate(&memory, mapped_bytes, &wanted, 0));
  done = first_of(done, driver_.cuMemMap(mapped_, mapped_bytes, 0, mappable_[0], 0));
  return first_of(done, open_mapped());
}

CUresult RedoProgram::map_anew() {
  CUresult done = driver_.cuMemUnmap(mapped_, mapped_bytes);
  done = first_of(done, driver_.cuMemMap(mapped_, mapped_bytes, 0, mappable_[1], 0));
  return first_of(done, open_mapped());
}

CUresult RedoProgram::open_mapped() {
  const CUmemAccessDesc rights{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return driver_.cuMemSetAccess(mapped_, mapped_bytes, &rights, 1);
}

/// As the host sees by the memory that the copy goes to.
bool RedoProgram::is_over(std::size_t host) {
  return std::atomic_ref(hosts_.at(host)[word_count - 1]).load() != 0;
}

CUresult RedoProgram::wait() {
  CUresult done = CUDA_SUCCESS;
  for (const CUstream stream : streams_) done = first_of(done, driver_.cuStreamSynchronize(stream));
  return done;
}

std::pair<CUresult, unsigned long long> RedoProgram::digest() {
  static std::array<std::uint32_t, word_count> words;
  unsigned long long sum = 0;
  for (const CUdeviceptr memory : memory_) {
    const CUresult copied = driver_.cuMemcpyDtoH_v2(words.data(), memory, buffer_bytes);
    if (copied != CUDA_SUCCESS) return {copied, 0};
    for (const std::uint32_t word : words) sum = sum * 31 + word;
  }
  for (std::size_t i = 0; i < word_count; ++i) sum = sum * 31 + hosts_[1][i];
  return {CUDA_SUCCESS, sum};
}

// ---- At random ----

/// The other stream goes on after all that was given to this one.
CUresult RedoProgram::change_stream() {
  const CUresult recorded = driver_.cuEventRecord(event_, streams_[stream_]);
  stream_ = 1 - stream_;
  return first_of(recorded, driver_.cuStreamWaitEvent(streams_[stream_], event_, 0));
}

CUresult RedoProgram::end_graph() {
  const CUresult ended = graph_ == nullptr ? CUDA_SUCCESS : driver_.cuGraphExecDestroy(graph_);
  graph_ = nullptr;
  return ended;
}

CUresult RedoProgram::capture(const std::string& what) {
  const CUstream stream = streams_[stream_];
  CUresult done =
      first_of(end_graph(), driver_.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::istringstream words(what);
  for (std::string each; std::getline(words, each, '+');) done = first_of(done, give(each));
  CUgraph graph = nullptr;
  done = first_of(done, driver_.cuStreamEndCapture(stream, &graph));
  done = first_of(done, driver_.cuGraphInstantiateWithFlags(&graph_, graph, 0));
  return first_of(done, driver_.cuGraphDestroy(graph));
}

CUresult RedoProgram::make_graph(const char* kernel, CUgraph* graph) {
  CUDA_KERNEL_NODE_PARAMS params{};
  std::uint32_t count = word_count;
  std::uint32_t value = 13;
  std::array<void*, 4> parameters{&memory_[3], &memory_[2], &count, &value};
  CUresult done = driver_.cuModuleGetFunction(&params.func, module_, kernel);
  params.gridDimX = word_count / block_threads;
  params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.blockDimX = block_threads;
  params.kernelParams = parameters.data();
  done = first_of(done, driver_.cuGraphCreate(graph, 0));
  CUgraphNode node = nullptr;
  return first_of(done, driver_.cuGraphAddKernelNode_v2(&node, *graph, nullptr, 0, &params));
}

CUresult RedoProgram::update(const char* kernel) {
  CUgraph graph = nullptr;
  CUgraphExecUpdateResultInfo info{};
  CUresult done = make_graph(kernel, &graph);
  done = first_of(done, driver_.cuGraphExecUpdate_v2(graph_, graph, &info));
  return first_of(done, driver_.cuGraphDestroy(graph));
}

/// Waits in one of several ways, reads what has come and writes what goes next.
CUresult RedoProgram::look(std::mt19937_64& random) {
  CUresult waited = CUDA_SUCCESS;
  switch (random() % 4) {
    case 0:
      waited = driver_.cuStreamSynchronize(streams_[stream_]);
      break;
    case 1:
      waited = driver_.cuCtxSynchronize();
      break;
    case 2:
      waited = driver_.cuEventRecord(event_, streams_[stream_]);
      waited = first_of(waited, driver_.cuEventSynchronize(event_));
      break;
    default:
      do {
        waited = driver_.cuStreamQuery(streams_[stream_]);
      } while (waited == CUDA_ERROR_NOT_READY);
  }
  if (waited != CUDA_SUCCESS) return waited;
  for (std::size_t i = 0; i < word_count; i += 97) note(hosts_[1][i]);
  for (std::size_t i = 0; i < word_count; ++i) hosts_[0][i] = static_cast<std::uint32_t>(random());
  for (std::size_t i = 0; i < word_count; i += 13) hosts_[1][i] = static_cast<std::uint32_t>(i);
  return CUDA_SUCCESS;
}

/// A kernel, a fill and a copy after it: launched, and often gone before it has run.
CUresult RedoProgram::do_random_graph(std::mt19937_64& random) {
  if (graph_ != nullptr && is_one_kernel_ && random() % 2 == 0)
    return first_of(update("weave"), driver_.cuGraphLaunch(graph_, streams_[stream_]));
  CUgraph graph = nullptr;
  CUresult done = first_of(end_graph(), make_graph(random() % 4 == 0 ? "knead" : "weave", &graph));
  is_one_kernel_ = random() % 2 == 0;
  if (!is_one_kernel_) {
    CUcontext context = nullptr;
    done = first_of(done, driver_.cuCtxGetCurrent(&context));
    const std::size_t to = random() % buffers;
    const CUDA_MEMSET_NODE_PARAMS fill{
        memory_[to], 0, static_cast<unsigned int>(random() % 256), 1, 1 + random() % buffer_bytes, 1};
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = memory_[to];
    copy.dstDevice = memory_[(to + 1) % buffers];
    copy.srcPitch = copy.dstPitch = 256;
    copy.WidthInBytes = 1 + random() % 256;
    copy.Height = 1 + random() % 8;
    copy.srcHeight = copy.dstHeight = 8;
    copy.Depth = 1 + random() % 4;
    CUgraphNode filled = nullptr;
    CUgraphNode node = nullptr;
    std::size_t count = 1;
    CUgraphNode first = nullptr;
    done = first_of(done, driver_.cuGraphGetNodes(graph, &first, &count));
    done = first_of(done, driver_.cuGraphAddMemsetNode(&filled, graph, &first, 1, &fill, context));
    done = first_of(done, driver_.cuGraphAddMemcpyNode(&node, graph, &filled, 1, &copy, context));
  }
  done = first_of(done, driver_.cuGraphInstantiateWithFlags(&graph_, graph, 0));
  done = first_of(done, driver_.cuGraphDestroy(graph));
  return first_of(done, driver_.cuGraphLaunch(graph_, streams_[stream_]));
}

CUresult RedoProgram::do_random(std::mt19937_64& random) {
  const CUstream stream = streams_[stream_];
  const std::size_t to = random() % buffers;
  const std::size_t from = (to + 1 + random() % (buffers - 1)) % buffers;
  const auto count = static_cast<std::uint32_t>(1 + random() % word_count);
  const auto value = static_cast<std::uint32_t>(random());
  const std::size_t bytes = count * sizeof(std::uint32_t);
  const std::uint64_t what = random() % 100;
  if (what < 5) return do_random_graph(random);
  if (what < 45) return launch("weave", to, from, count, value);
  if (what < 50) return launch("knead", to, from, count, value);
  if (what < 53) return launch("gather", to, from, count, value);
  if (what < 61) return driver_.cuMemsetD32Async(memory_[to], value, count, stream);
  if (what < 64) return driver_.cuMemsetD8Async(memory_[to] + count % 7, 5, count, stream);
  if (what < 67)
    return driver_.cuMemsetD2D16Async(memory_[to], 256, static_cast<unsigned short>(value), 60, 30, stream);
  if (what < 73) return driver_.cuMemcpyDtoDAsync_v2(memory_[to], memory_[from], bytes, stream);
  if (what < 77) return driver_.cuMemcpyHtoDAsync_v2(memory_[to], hosts_[0], bytes, stream);
  if (what < 80) {
    std::ranges::generate(pageable_, [&] { return static_cast<std::uint32_t>(random()); });
    const CUresult copied =
        driver_.cuMemcpyHtoDAsync_v2(memory_[to], pageable_.data(), sizeof pageable_, stream);
    pageable_.fill(0);  // the program may do so
    return copied;
  }
  if (what < 83) {
    const CUresult waited = driver_.cuStreamSynchronize(stream);  // other streams do not wait for that copy
    return first_of(waited, driver_.cuMemcpyHtoD_v2(memory_[to], hosts_[0], bytes));
  }
  if (what < 88) return driver_.cuMemcpyDtoHAsync_v2(hosts_[1], memory_[from], bytes, stream);
  if (what < 93) return change_stream();
  return look(random);
}

std::pair<CUresult, unsigned long long> RedoProgram::run_random(std::uint64_t seed, unsigned int operations) {
  std::mt19937_64 random(seed);
  seen_ = seed;
  std::fill_n(hosts_[0], word_count, 17U);
  std::fill_n(hosts_[1], word_count, 19U);
  CUresult done = end_graph();
  for (std::size_t i = 0; i < buffers; ++i)
    done = first_of(done, driver_.cuMemsetD32_v2(memory_[i], static_cast<unsigned int>(i + 1), word_count));
  done = first_of(done, driver_.cuCtxSynchronize());
  for (unsigned int i = 0; i < operations && done == CUDA_SUCCESS; ++i) done = do_random(random);
  done = first_of(done, wait());
  if (done != CUDA_SUCCESS) return {done, 0};
  const auto [result, sum] = digest();
  note(sum);
  return {result, seen_};
}

}  // namespace firebreak::test
