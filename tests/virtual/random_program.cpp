// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual/random_program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_graphs.h"
#include "tests/virtual/random_mappings.h"

namespace firebreak::test {
namespace {

/// `mix` changes words and counts its runs, `tell` says how many there were.
constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .const .align 4 .b8 factors[16];
.visible .global .align 4 .u32 runs = 0;

.visible .entry mix(.param .u64 words, .param .u32 count, .param .u32 value)
{
  .reg .u64 %p, %a;
  .reg .u32 %i, %x, %n, %v, %f;
  .reg .pred %more;
  ld.param.u64 %p, [words];
  ld.param.u32 %n, [count];
  ld.param.u32 %v, [value];
  ld.const.u32 %f, [factors+8];
  mov.u64 %a, runs;
  red.global.add.u32 [%a], 1;
  mov.u32 %i, 0;
again:
  ld.global.u32 %x, [%p];
  mad.lo.u32 %x, %x, 1664525, %v;
  add.u32 %x, %x, %f;
  add.u32 %x, %x, %i;
  st.global.u32 [%p], %x;
  add.u64 %p, %p, 4;
  add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, %n;
  @%more bra again;
  ret;
}

.visible .entry tell(.param .u64 words)
{
  .reg .u64 %p, %a;
  .reg .u32 %x;
  ld.param.u64 %p, [words];
  mov.u64 %a, runs;
  ld.global.u32 %x, [%a];
  st.global.u32 [%p], %x;
  ret;
}
)";

constexpr std::size_t objects_max = 6;
constexpr std::uint32_t words_max = 96;

class RandomProgram {
 public:
  RandomProgram(const cuda::Backend& driver, std::uint64_t seed, bool with_contexts)
      : driver_(driver), random_(seed), with_contexts_(with_contexts) {}

  std::uint64_t run(unsigned int calls) {
    driver_.cuCtxGetCurrent(&context_);
    load_code();
    allocate();
    for (unsigned int i = 0; i < calls; ++i) (this->*any_act())();
    give_everything_back();
    return seen_;
  }

 private:
  using Act = void (RandomProgram::*)();

  /// What is queued for it is in the order of its stream, so that what it holds does not depend on time.
  struct Memory {
    CUdeviceptr begin;
    std::uint32_t words;
    CUstream stream;
  };
  struct Code {
    CUmodule module;
    CUlibrary library;  ///< null: it is the module
    CUdeviceptr factors;
  };
  struct Host {
    std::uint32_t* words;
    std::unique_ptr<std::array<std::uint32_t, 2048>> own;  ///< null: the driver's
  };

  /// With what was made in it, and goes with it.
  struct Context {
    CUcontext handle;
    CUstream stream;
    CUmodule module;
    CUdeviceptr words;
  };

  struct Graph {
    CUgraphExec exec;
    CUgraph kept;  ///< null: it is gone, as it mostly is
    CUdeviceptr begin;
    std::uint32_t words;
  };

  // ---- What is seen, and what is drawn ----

  void note(std::uint64_t value) {
    seen_ = (seen_ ^ value) * 0x9e3779b97f4a7c15;
    seen_ ^= seen_ >> 29;
  }
  bool good(CUresult result) {
    note(static_cast<std::uint64_t>(result));
    return result == CUDA_SUCCESS;
  }
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  template <class Kind>
  Kind& one_of(std::vector<Kind>& all) {
    return all[below(all.size())];
  }
  Act any_act();

  void wait_for_all() { good(driver_.cuCtxSynchronize()); }
  CUstream any_stream() {
    const std::size_t drawn = below(streams_.size() + 2);
    if (drawn < streams_.size()) return streams_[drawn];
    return drawn == streams_.size() ? nullptr : reinterpret_cast<CUstream>(CU_STREAM_PER_THREAD_AS_INT);
  }

  // ---- Memory ----

  void allocate() {
    if (memories_.size() == objects_max) return free();
    Memory made{0, 1 + below(words_max), nullptr};
    const std::uint32_t value = below(1000);
    if (below(3) == 0) {
      made.stream = any_stream();
      if (!good(driver_.cuMemAllocAsync(&made.begin, made.words * 4, made.stream))) return;
      good(driver_.cuMemsetD32Async(made.begin, value, made.words, made.stream));
    } else {
      std::size_t pitch_bytes = 0;
      const bool with_pitch = below(4) == 0;
      if (!good(with_pitch ? driver_.cuMemAllocPitch_v2(&made.begin, &pitch_bytes, made.words * 4, 1, 4)
                           : driver_.cuMemAlloc_v2(&made.begin, made.words * 4)))
        return;
      good(driver_.cuMemsetD32_v2(made.begin, value, made.words));
      wait_for_all();
    }
    memories_.push_back(made);
  }
  void free() {
    if (memories_.size() == 1) return;
    const std::size_t drawn = below(memories_.size());
    const Memory freed = memories_[drawn];
    if (below(3) == 0) {
      good(driver_.cuMemFreeAsync(freed.begin, freed.stream));
    } else {
      wait_for_all();
      good(driver_.cuMemFree_v2(freed.begin));
    }
    memories_.erase(memories_.begin() + static_cast<std::ptrdiff_t>(drawn));
  }
  /// From now on it is used in another stream, which waits for the one before.
  void change_stream() {
    Memory& memory = one_of(memories_);
    const CUstream next = any_stream();
    if (events_.empty()) {
      good(driver_.cuStreamSynchronize(memory.stream));
    } else {
      const CUevent event = one_of(events_);
      good(driver_.cuEventRecord(event, memory.stream));
      good(driver_.cuStreamWaitEvent(next, event, 0));
    }
    memory.stream = next;
  }
  void fill() {
    const Memory& memory = one_of(memories_);
    const std::uint32_t value = below(1U << 20);
    switch (below(4)) {
      case 0:
        return void(good(driver_.cuMemsetD8Async(memory.begin, static_cast<unsigned char>(value),
                                                 memory.words * 4, memory.stream)));
      case 1:
        return void(good(driver_.cuMemsetD16Async(memory.begin, static_cast<unsigned short>(value),
                                                  memory.words * 2, memory.stream)));
      case 2:
        return void(good(driver_.cuMemsetD32Async(memory.begin, value, memory.words, memory.stream)));
      default:
        return void(good(driver_.cuMemsetD2D32Async(memory.begin, memory.words * 4, value, memory.words, 1,
                                                    memory.stream)));
    }
  }
  void write() {
    const Memory& memory = one_of(memories_);
    std::vector<std::uint32_t> words(memory.words);
    for (std::uint32_t& word : words) word = below(1U << 30);
    const std::size_t size_bytes = memory.words * 4;
    switch (below(3)) {
      case 0:
        good(driver_.cuStreamSynchronize(memory.stream));
        good(driver_.cuMemcpyHtoD_v2(memory.begin, words.data(), size_bytes));
        return wait_for_all();
      case 1: {
        CUDA_MEMCPY2D copy{};
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = words.data();
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = memory.begin;
        copy.WidthInBytes = size_bytes;
        copy.Height = 1;
        good(driver_.cuMemcpy2DAsync_v2(&copy, memory.stream));
        break;
      }
      default:
        good(driver_.cuMemcpyHtoDAsync_v2(memory.begin, words.data(), size_bytes, memory.stream));
    }
    good(driver_.cuStreamSynchronize(memory.stream));
  }
  void copy() {
    const Memory from = one_of(memories_);
    Memory& to = one_of(memories_);
    if (from.begin == to.begin) return;
    good(driver_.cuStreamSynchronize(from.stream));
    const std::size_t size_bytes = std::min(from.words, to.words) * 4;
    good(below(2) == 0 ? driver_.cuMemcpyDtoDAsync_v2(to.begin, from.begin, size_bytes, to.stream)
                       : driver_.cuMemcpyAsync(to.begin, from.begin, size_bytes, to.stream));
    good(driver_.cuStreamSynchronize(to.stream));
  }
  void read() {
    const Memory& memory = one_of(memories_);
    std::vector<std::uint32_t> words(memory.words);
    if (below(2) == 0) {
      good(driver_.cuStreamSynchronize(memory.stream));
      good(driver_.cuMemcpyDtoH_v2(words.data(), memory.begin, memory.words * 4));
    } else {
      good(driver_.cuMemcpyDtoHAsync_v2(words.data(), memory.begin, memory.words * 4, memory.stream));
      good(driver_.cuStreamSynchronize(memory.stream));
    }
    for (const std::uint32_t word : words) note(word);
  }
  /// What the driver says of it, without the addresses themselves.
  void describe() {
    const Memory& memory = one_of(memories_);
    const CUdeviceptr inside = memory.begin + below(memory.words * 4);
    CUdeviceptr begin = 0;
    std::size_t size_bytes = 0;
    good(driver_.cuMemGetAddressRange_v2(&begin, &size_bytes, inside));
    note(memory.begin - begin);
    note(size_bytes);
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
    void* into = &begin;
    good(driver_.cuPointerGetAttribute(&begin, attribute, inside));
    note(memory.begin - begin);
    good(driver_.cuPointerGetAttributes(1, &attribute, &into, inside));
    note(memory.begin - begin);
    CUcontext context = nullptr;
    good(driver_.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, inside));
    note(context == context_ ? 1 : 0);
  }

  // ---- Mappings of its own ----

  void create_mapped() { mappings_.create(); }
  void change_mapped() { mappings_.change(); }
  void use_mapped() { mappings_.use(function(one_of(codes_), "mix"), any_stream()); }
  void describe_mapped() { mappings_.describe(); }

  // ---- Host memory ----

  void pin() {
    if (hosts_.size() == objects_max) return unpin();
    Host made{};
    if (below(2) == 0) {
      void* words = nullptr;
      if (!good(driver_.cuMemHostAlloc(&words, words_max * 4, 0))) return;
      made.words = static_cast<std::uint32_t*>(words);
    } else {
      made.own = std::make_unique<std::array<std::uint32_t, 2048>>();
      made.words = made.own->data();
      if (!good(driver_.cuMemHostRegister_v2(made.words, words_max * 4, 0))) return;
    }
    hosts_.push_back(std::move(made));
  }
  void unpin() {
    if (hosts_.empty()) return;
    const std::size_t drawn = below(hosts_.size());
    Host& host = hosts_[drawn];
    good(host.own == nullptr ? driver_.cuMemFreeHost(host.words) : driver_.cuMemHostUnregister(host.words));
    hosts_.erase(hosts_.begin() + static_cast<std::ptrdiff_t>(drawn));
  }
  void use_pinned() {
    if (hosts_.empty()) return pin();
    const Memory& memory = one_of(memories_);
    std::uint32_t* const words = one_of(hosts_).words;
    good(driver_.cuMemcpyDtoHAsync_v2(words, memory.begin, memory.words * 4, memory.stream));
    good(driver_.cuStreamSynchronize(memory.stream));
    for (std::uint32_t i = 0; i < memory.words; ++i) note(words[i] = words[i] * 3 + i);
    good(driver_.cuMemcpyHtoDAsync_v2(memory.begin, words, memory.words * 4, memory.stream));
    good(driver_.cuStreamSynchronize(memory.stream));
  }

  // ---- Code ----

  void load_code() {
    if (codes_.size() == objects_max) return unload_code();
    Code made{};
    if (with_contexts_ || below(2) == 0) {
      if (!good(driver_.cuModuleLoadData(&made.module, ptx))) return;
    } else {
      if (!good(driver_.cuLibraryLoadData(&made.library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0)))
        return;
      if (!good(driver_.cuLibraryGetModule(&made.module, made.library))) return;
    }
    codes_.push_back(made);
  }
  void unload_code() {
    if (codes_.size() == 1) return;
    wait_for_all();
    const std::size_t drawn = below(codes_.size());
    const Code& code = codes_[drawn];
    good(code.library == nullptr ? driver_.cuModuleUnload(code.module)
                                 : driver_.cuLibraryUnload(code.library));
    codes_.erase(codes_.begin() + static_cast<std::ptrdiff_t>(drawn));
  }
  CUfunction function(const Code& code, const char* name) {
    CUfunction found = nullptr;
    if (code.library == nullptr || below(3) == 0) {
      good(driver_.cuModuleGetFunction(&found, code.module, name));
      return found;
    }
    CUkernel kernel = nullptr;
    good(driver_.cuLibraryGetKernel(&kernel, code.library, name));
    if (below(2) == 0) return reinterpret_cast<CUfunction>(kernel);
    good(driver_.cuKernelGetFunction(&found, kernel));
    return found;
  }
  void launch() {
    const Memory& memory = one_of(memories_);
    CUdeviceptr begin = memory.begin;
    std::uint32_t count = memory.words;
    std::uint32_t value = below(1U << 16);
    std::array<void*, 3> parameters{&begin, &count, &value};
    const CUfunction mix = function(one_of(codes_), "mix");
    switch (below(3)) {
      case 0:
        return void(good(
            driver_.cuLaunchKernel(mix, 1, 1, 1, 1, 1, 1, 0, memory.stream, parameters.data(), nullptr)));
      case 1: {
        const CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, memory.stream, nullptr, 0};
        return void(good(driver_.cuLaunchKernelEx(&config, mix, parameters.data(), nullptr)));
      }
      default: {
        struct {
          CUdeviceptr begin;
          std::uint32_t count;
          std::uint32_t value;
        } packed{begin, count, value};
        std::size_t size_bytes = sizeof packed;
        std::array<void*, 5> extra{reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size_bytes,
                                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT), &packed,
                                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_END_AS_INT)};
        good(driver_.cuLaunchKernel(mix, 1, 1, 1, 1, 1, 1, 0, memory.stream, nullptr, extra.data()));
      }
    }
  }
  /// How often its `mix` has run.
  void ask_code() {
    const Memory& memory = one_of(memories_);
    const CUfunction tell = function(one_of(codes_), "tell");
    wait_for_all();
    CUdeviceptr begin = memory.begin;
    std::array<void*, 1> parameters{&begin};
    good(driver_.cuLaunchKernel(tell, 1, 1, 1, 1, 1, 1, 0, memory.stream, parameters.data(), nullptr));
    read();
  }
  void take_factors() {
    Code& code = one_of(codes_);
    CUdeviceptr address = 0;
    std::size_t size_bytes = 0;
    const CUresult result = code.library == nullptr
                                ? driver_.cuModuleGetGlobal_v2(&address, &size_bytes, code.module, "factors")
                                : driver_.cuLibraryGetGlobal(&address, &size_bytes, code.library, "factors");
    if (!good(result)) return;
    note(size_bytes);
    note(code.factors == 0 || code.factors == address ? 1 : 0);
    code.factors = address;
  }
  void write_factors() {
    const Code& code = one_of(codes_);
    if (code.factors == 0) return take_factors();
    wait_for_all();
    const std::uint32_t value = below(1U << 16);
    const CUdeviceptr place = code.factors + 4 * below(4);
    good(below(2) == 0 ? driver_.cuMemcpyHtoD_v2(place, &value, 4) : driver_.cuMemsetD32_v2(place, value, 1));
    wait_for_all();
    std::array<std::uint32_t, 4> now{};
    good(driver_.cuMemcpyDtoH_v2(now.data(), code.factors, sizeof now));
    for (const std::uint32_t each : now) note(each);
  }
  void ask_function() {
    const CUfunction mix = function(codes_.front(), "mix");
    int value = 0;
    good(driver_.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, mix));
    note(static_cast<std::uint64_t>(value));
    good(driver_.cuFuncSetCacheConfig(mix, static_cast<CUfunc_cache>(below(4))));
  }

  // ---- Streams and events ----

  void make_stream() {
    if (streams_.size() == objects_max) return end_stream();
    CUstream made = nullptr;
    const unsigned int flags = below(2) == 0 ? CU_STREAM_NON_BLOCKING : 0;
    if (good(below(2) == 0 ? driver_.cuStreamCreate(&made, flags)
                           : driver_.cuStreamCreateWithPriority(&made, flags, 0)))
      streams_.push_back(made);
  }
  /// What was queued in it is still done.
  void end_stream() {
    if (streams_.empty()) return;
    const std::size_t drawn = below(streams_.size());
    const CUstream ended = streams_[drawn];
    good(driver_.cuStreamDestroy_v2(ended));
    streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(drawn));
    wait_for_all();
    for (Memory& memory : memories_) memory.stream = memory.stream == ended ? nullptr : memory.stream;
  }
  void ask_stream() {
    const CUstream stream = any_stream();
    good(driver_.cuStreamSynchronize(stream));
    good(driver_.cuStreamQuery(stream));
    if (stream == nullptr || stream == reinterpret_cast<CUstream>(CU_STREAM_PER_THREAD_AS_INT)) return;
    unsigned int flags = 0;
    int priority = 0;
    CUcontext context = nullptr;
    good(driver_.cuStreamGetFlags(stream, &flags));
    good(driver_.cuStreamGetPriority(stream, &priority));
    good(driver_.cuStreamGetCtx(stream, &context));
    note(flags);
    note(static_cast<std::uint64_t>(priority));
    note(context == context_ ? 1 : 0);
  }
  void make_event() {
    if (events_.size() == objects_max) return end_event();
    CUevent made = nullptr;
    if (good(driver_.cuEventCreate(&made, below(2) == 0 ? CU_EVENT_DISABLE_TIMING : 0)))
      events_.push_back(made);
  }
  void end_event() {
    if (events_.empty()) return;
    const std::size_t drawn = below(events_.size());
    good(driver_.cuEventDestroy_v2(events_[drawn]));
    events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(drawn));
  }
  void use_event() {
    if (events_.empty()) return make_event();
    const CUevent event = one_of(events_);
    good(driver_.cuEventRecord(event, any_stream()));
    good(driver_.cuEventSynchronize(event));
    good(driver_.cuEventQuery(event));
  }
  /// Whether it is answered, as it is where both were recorded and measure time.
  void ask_time() {
    if (events_.empty()) return make_event();
    wait_for_all();
    float milliseconds = 0;
    good(driver_.cuEventElapsedTime(&milliseconds, one_of(events_), one_of(events_)));
  }

  // ---- Contexts ----

  static constexpr std::size_t contexts_max = 2;
  static constexpr std::uint32_t words_of_context = 16;

  void make_context() {
    if (!with_contexts_ || contexts_.size() == contexts_max) return end_context();
    Context made{};
    if (!good(driver_.cuCtxCreate_v2(&made.handle, 0, 0))) return;
    good(driver_.cuStreamCreate(&made.stream, CU_STREAM_NON_BLOCKING));
    good(driver_.cuModuleLoadData(&made.module, ptx));
    good(driver_.cuMemAlloc_v2(&made.words, words_of_context * 4));
    good(driver_.cuMemsetD32_v2(made.words, below(1000), words_of_context));
    wait_for_all();
    CUcontext left = nullptr;
    good(driver_.cuCtxPopCurrent_v2(&left));
    note(left == made.handle ? 1 : 0);
    contexts_.push_back(made);
  }
  void use_context() {
    if (contexts_.empty()) return make_context();
    const Context& used = one_of(contexts_);
    good(driver_.cuCtxPushCurrent_v2(used.handle));
    CUcontext of_stream = nullptr;
    good(driver_.cuStreamGetCtx(used.stream, &of_stream));
    note(of_stream == used.handle ? 1 : 0);
    CUcontext of_words = nullptr;
    good(driver_.cuPointerGetAttribute(&of_words, CU_POINTER_ATTRIBUTE_CONTEXT, used.words));
    note(of_words == used.handle ? 1 : 0);
    CUfunction mix = nullptr;
    good(driver_.cuModuleGetFunction(&mix, used.module, "mix"));
    CUdeviceptr begin = used.words;
    std::uint32_t count = words_of_context;
    std::uint32_t value = below(1U << 16);
    std::array<void*, 3> parameters{&begin, &count, &value};
    good(driver_.cuLaunchKernel(mix, 1, 1, 1, 1, 1, 1, 0, used.stream, parameters.data(), nullptr));
    wait_for_all();
    std::array<std::uint32_t, words_of_context> words{};
    good(driver_.cuMemcpyDtoH_v2(words.data(), used.words, sizeof words));
    for (const std::uint32_t word : words) note(word);
    good(driver_.cuCtxPopCurrent_v2(nullptr));
  }
  /// Nothing that was made in it is given back before.
  void end_context() {
    if (contexts_.empty()) return;
    const std::size_t drawn = below(contexts_.size());
    good(driver_.cuCtxDestroy_v2(contexts_[drawn].handle));
    contexts_.erase(contexts_.begin() + static_cast<std::ptrdiff_t>(drawn));
  }

  // ---- Graphs ----

  /// Its memory is its own, and its code stays: whoever launches it finds both.
  void make_graph() {
    if (graphs_.size() == 2) return end_graph();
    if (graph_code_ == nullptr && !prepare_graphs()) return;
    Graph made{};
    made.words = 2 + below(words_max - 1);
    if (!good(driver_.cuMemAlloc_v2(&made.begin, made.words * 4))) return;
    good(driver_.cuMemsetD32_v2(made.begin, below(1000), made.words));
    wait_for_all();
    const CUgraph graph = capture(made);
    if (below(2) == 0) {
      good(driver_.cuGraphInstantiateWithFlags(&made.exec, graph, 0));
    } else {
      CUDA_GRAPH_INSTANTIATE_PARAMS params{};
      good(driver_.cuGraphInstantiateWithParams(&made.exec, graph, &params));
    }
    if (below(3) == 0) {
      made.kept = graph;
    } else {
      good(driver_.cuGraphDestroy(graph));
    }
    graphs_.push_back(made);
  }
  bool prepare_graphs() {
    if (!good(driver_.cuModuleLoadData(&graph_code_, ptx))) return false;
    good(driver_.cuModuleGetFunction(&graph_mix_, graph_code_, "mix"));
    for (CUstream& stream : graph_streams_) good(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (CUevent& event : graph_events_) good(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return true;
  }
  void capture_mix(const Graph& graph, std::uint32_t first, std::uint32_t count, CUstream stream) {
    CUdeviceptr begin = graph.begin + first * 4;
    std::uint32_t value = below(1U << 16);
    std::array<void*, 3> parameters{&begin, &count, &value};
    good(driver_.cuLaunchKernel(graph_mix_, 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr));
  }
  /// Two streams: each half of the memory in one of them, then all of it.
  CUgraph capture(const Graph& graph) {
    const auto [first, second] = graph_streams_;
    const std::uint32_t half = graph.words / 2;
    good(driver_.cuStreamBeginCapture_v2(first, static_cast<CUstreamCaptureMode>(below(3))));
    capture_mix(graph, 0, graph.words, first);
    good(driver_.cuEventRecord(graph_events_[0], first));
    good(driver_.cuStreamWaitEvent(second, graph_events_[0], 0));
    capture_mix(graph, 0, half, first);
    capture_mix(graph, half, graph.words - half, second);
    good(driver_.cuMemsetD32Async(graph.begin + half * 4, below(1000), 1, second));
    good(driver_.cuEventRecord(graph_events_[1], second));
    good(driver_.cuStreamWaitEvent(first, graph_events_[1], 0));
    good(driver_.cuMemcpyDtoDAsync_v2(graph.begin, graph.begin + half * 4, 4, first));
    capture_mix(graph, 0, graph.words, first);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    good(driver_.cuStreamIsCapturing(second, &status));
    note(static_cast<std::uint64_t>(status));
    CUgraph captured = nullptr;
    good(driver_.cuStreamEndCapture(first, &captured));
    std::size_t nodes = 0;
    good(driver_.cuGraphGetNodes(captured, nullptr, &nodes));
    note(nodes);
    return captured;
  }
  void launch_graph() {
    if (graphs_.empty()) return make_graph();
    const Graph& graph = one_of(graphs_);
    const CUstream stream = any_stream();
    for (std::uint32_t times = 1 + below(3); times > 0; --times)
      good(driver_.cuGraphLaunch(graph.exec, stream));
    good(driver_.cuStreamSynchronize(stream));
    std::vector<std::uint32_t> words(graph.words);
    good(driver_.cuMemcpyDtoH_v2(words.data(), graph.begin, graph.words * 4));
    for (const std::uint32_t word : words) note(word);
  }
  void update_graph() {
    if (graphs_.empty()) return make_graph();
    Graph& graph = one_of(graphs_);
    if (graph.kept != nullptr && below(2) == 0) {
      good(driver_.cuGraphExecDestroy(graph.exec));
      good(driver_.cuGraphInstantiateWithFlags(&graph.exec, graph.kept, 0));
      return;
    }
    const CUgraph other = capture(graph);
    CUgraphExecUpdateResultInfo info{};
    good(driver_.cuGraphExecUpdate_v2(graph.exec, other, &info));
    note(static_cast<std::uint64_t>(info.result));
    good(driver_.cuGraphDestroy(other));
  }
  void end_graph() {
    if (graphs_.empty()) return;
    const std::size_t drawn = below(graphs_.size());
    const Graph ended = graphs_[drawn];
    wait_for_all();
    good(driver_.cuGraphExecDestroy(ended.exec));
    if (ended.kept != nullptr) good(driver_.cuGraphDestroy(ended.kept));
    good(driver_.cuMemFree_v2(ended.begin));
    graphs_.erase(graphs_.begin() + static_cast<std::ptrdiff_t>(drawn));
  }
  void end_all_graphs() {
    while (!graphs_.empty()) end_graph();
    if (graph_code_ == nullptr) return;
    for (const CUstream stream : graph_streams_) good(driver_.cuStreamDestroy_v2(stream));
    for (const CUevent event : graph_events_) good(driver_.cuEventDestroy_v2(event));
    good(driver_.cuModuleUnload(graph_code_));
  }

  // ---- The rest ----

  /// What the driver is to refuse.
  void do_nonsense() {
    CUdeviceptr address = 0;
    CUfunction none = nullptr;
    good(driver_.cuMemAlloc_v2(&address, 0));
    good(driver_.cuMemFree_v2(0));
    good(driver_.cuModuleGetFunction(&none, codes_.front().module, "no such kernel"));
    good(driver_.cuMemcpyHtoD_v2(one_of(memories_).begin, nullptr, 0));
    good(driver_.cuModuleLoadData(nullptr, ptx));
    good(driver_.cuStreamCreate(nullptr, 0));
    mappings_.misuse();
    wait_for_all();
  }
  /// Another thread of the program's uses the same objects. What is one thread's own stream is not the
  /// other's.
  void act_elsewhere() {
    wait_for_all();
    std::thread other([this] {
      good(driver_.cuCtxSetCurrent(context_));
      launch();
      read();
      make_stream();
      wait_for_all();
      good(driver_.cuCtxSetCurrent(nullptr));
    });
    other.join();
  }
  void ask_context() {
    CUcontext now = nullptr;
    good(driver_.cuCtxGetCurrent(&now));
    note(now == context_ ? 1 : 0);
    good(driver_.cuCtxPushCurrent_v2(context_));
    good(driver_.cuCtxPopCurrent_v2(&now));
    note(now == context_ ? 1 : 0);
  }

  void give_everything_back() {
    end_all_graphs();
    mappings_.end_all();
    while (contexts_.size() > 0) end_context();
    while (hosts_.size() > 0) unpin();
    while (memories_.size() > 1) free();
    good(driver_.cuMemFree_v2(memories_.front().begin));
    while (events_.size() > 0) end_event();
    memories_.clear();
    while (streams_.size() > 0) end_stream();
    while (codes_.size() > 1) unload_code();
    const Code& last = codes_.front();
    good(last.library == nullptr ? driver_.cuModuleUnload(last.module)
                                 : driver_.cuLibraryUnload(last.library));
  }

  const cuda::Backend& driver_;
  std::mt19937_64 random_;
  bool with_contexts_;
  std::uint64_t seen_ = 0;
  CUcontext context_ = nullptr;
  std::vector<Memory> memories_;
  RandomMappings mappings_{driver_, [this](std::uint64_t value) { note(value); },
                           [this](std::size_t bound) { return below(bound); }};
  std::vector<Host> hosts_;
  std::vector<Code> codes_;
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
  std::vector<Context> contexts_;
  std::vector<Graph> graphs_;
  CUmodule graph_code_ = nullptr;  ///< null: nothing for graphs is there yet
  CUfunction graph_mix_ = nullptr;
  std::array<CUstream, 2> graph_streams_{};
  std::array<CUevent, 2> graph_events_{};
};

RandomProgram::Act RandomProgram::any_act() {
  static constexpr std::array<Act, 40> acts{&RandomProgram::allocate,      &RandomProgram::free,
                                            &RandomProgram::change_stream, &RandomProgram::change_stream,
                                            &RandomProgram::fill,          &RandomProgram::write,
                                            &RandomProgram::copy,          &RandomProgram::read,
                                            &RandomProgram::describe,      &RandomProgram::pin,
                                            &RandomProgram::unpin,         &RandomProgram::use_pinned,
                                            &RandomProgram::load_code,     &RandomProgram::unload_code,
                                            &RandomProgram::launch,        &RandomProgram::launch,
                                            &RandomProgram::launch,        &RandomProgram::ask_code,
                                            &RandomProgram::write_factors, &RandomProgram::ask_function,
                                            &RandomProgram::make_stream,   &RandomProgram::end_stream,
                                            &RandomProgram::ask_stream,    &RandomProgram::use_event,
                                            &RandomProgram::ask_time,      &RandomProgram::act_elsewhere,
                                            &RandomProgram::ask_context,   &RandomProgram::make_context,
                                            &RandomProgram::use_context,   &RandomProgram::make_graph,
                                            &RandomProgram::launch_graph,  &RandomProgram::launch_graph,
                                            &RandomProgram::update_graph,  &RandomProgram::end_graph,
                                            &RandomProgram::create_mapped, &RandomProgram::change_mapped,
                                            &RandomProgram::change_mapped, &RandomProgram::use_mapped,
                                            &RandomProgram::use_mapped,    &RandomProgram::describe_mapped};
  // What is refused is the same all the time: less of it.
  return below(40) == 0 ? &RandomProgram::do_nonsense : acts[below(acts.size())];
}

}  // namespace

std::uint64_t run_random_program(const cuda::Backend& driver, std::uint64_t seed, unsigned int calls,
                                 bool with_contexts) {
  return RandomProgram(driver, seed, with_contexts).run(calls);
}

}  // namespace firebreak::test
