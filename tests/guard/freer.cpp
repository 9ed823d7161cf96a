// SPDX-License-Identifier: Apache-2.0
/// A program that links against libcuda and frees memory in all ways while a kernel still reads it, and while
/// a stream is captured. It says what each of its calls came to, and what the kernel read.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "shared/abi/cuda_driver_functions.h"

extern "C" {
CUresult cuInit(unsigned int);
CUresult cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuModuleLoadDataEx(CUmodule*, const void*, unsigned int, CUjit_option*, void**);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuStreamCreate(CUstream*, unsigned int);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode*, std::size_t*);
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemHostAlloc(void**, std::size_t, unsigned int);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, std::size_t);
CUresult cuLaunchKernel(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, unsigned int, CUstream, void**, void**);
}

namespace {

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry read_late(.param .u64 words, .param .u64 memory)
{
  .reg .u64 %words, %memory;
  .reg .u32 %value;
  .reg .pred %closed;
  ld.param.u64 %words, [words];
  ld.param.u64 %memory, [memory];
again:
  ld.volatile.u32 %value, [%words];
  setp.eq.u32 %closed, %value, 0;
  @%closed bra again;
  ld.volatile.u32 %value, [%memory];
  st.volatile.u32 [%words+4], %value;
  ret;
}
)";

constexpr std::size_t size_bytes = std::size_t{4} << 20;
/// A free that does not wait is through by then.
constexpr useconds_t a_while_us = 50'000;

void say(const char* call, CUresult result) { std::printf("%s %d\n", call, static_cast<int>(result)); }

CUdeviceptr allocate(std::size_t bytes = size_bytes) {
  CUdeviceptr memory = 0;
  say("allocate", cuMemAlloc_v2(&memory, bytes));
  say("fill", cuMemsetD8_v2(memory, 0x5a, bytes));
  say("filled", cuCtxSynchronize());
  return memory;
}

/// A context, and a kernel of its own that reads when a gate opens.
class Reader {
 public:
  Reader() {
    say("context", cuCtxCreate_v2(&context_, 0, 0));
    CUmodule module = nullptr;
    say("module", cuModuleLoadDataEx(&module, ptx, 0, nullptr, nullptr));
    say("function", cuModuleGetFunction(&function_, module, "read_late"));
    say("stream", cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    void* words = nullptr;
    say("words", cuMemHostAlloc(&words, 4096, 0));
    words_ = static_cast<std::uint32_t*>(words);
  }
  CUcontext context() const { return context_; }
  CUstream stream() const { return stream_; }

  void launch(CUdeviceptr memory) {
    words_[0] = words_[1] = 0;
    auto words = reinterpret_cast<CUdeviceptr>(words_);
    std::array<void*, 2> arguments{&words, &memory};
    say("launch", cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, stream_, arguments.data(), nullptr));
  }
  /// Runs `free`, which may wait for the kernel, and says what the kernel read.
  template <class Free>
  void open_gate_during(const Free& free) {
    std::thread opener([this] {
      ::usleep(a_while_us);
      std::atomic_ref(words_[0]).store(1);
    });
    free();
    opener.join();
    say("current", cuCtxSetCurrent(context_));
    say("synchronize", cuStreamSynchronize(stream_));
    std::printf("the kernel read %x\n", words_[1]);
  }

 private:
  CUcontext context_ = nullptr;
  CUfunction function_ = nullptr;
  CUstream stream_ = nullptr;
  std::uint32_t* words_ = nullptr;
};

void free_with_current(Reader& reader, CUcontext current, std::size_t bytes) {
  say("current", cuCtxSetCurrent(reader.context()));
  const CUdeviceptr memory = allocate(bytes);
  reader.launch(memory);
  say("current", cuCtxSetCurrent(current));
  reader.open_gate_during([&] { say("free", cuMemFree_v2(memory)); });
  say("free again", cuMemFree_v2(memory));
}

void free_in_stream_order(Reader& reader) {
  const CUdeviceptr memory = allocate();
  reader.launch(memory);
  reader.open_gate_during([&] { say("free in order", cuMemFreeAsync(memory, reader.stream())); });
  say("free again", cuMemFree_v2(memory));
  say("free in order again", cuMemFreeAsync(memory, reader.stream()));
  say("free nothing in order", cuMemFreeAsync(0x1234000, reader.stream()));
}

/// What the call does to a capture that is under way.
template <class Call>
void during_capture(Reader& reader, CUstreamCaptureMode mode, const Call& call) {
  say("begin", cuStreamBeginCapture_v2(reader.stream(), mode));
  reader.launch(0);
  call();
  CUgraph graph = nullptr;
  say("end", cuStreamEndCapture(reader.stream(), &graph));
  std::size_t nodes = 0;
  if (graph != nullptr) say("nodes", cuGraphGetNodes(graph, nullptr, &nodes));
  std::printf("captured %zu\n", nodes);
}

void free_during_captures(Reader& reader) {
  for (const auto mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    const CUdeviceptr memory = allocate();
    const CUdeviceptr other = allocate();
    CUdeviceptr more = 0;
    during_capture(reader, mode, [&] { say("free in capture", cuMemFree_v2(memory)); });
    during_capture(reader, mode, [&] { say("allocate in capture", cuMemAlloc_v2(&more, size_bytes)); });
    during_capture(reader, mode, [&] { say("free into capture", cuMemFreeAsync(other, reader.stream())); });
    during_capture(reader, mode, [&] {
      std::thread([&] {
        say("current", cuCtxSetCurrent(reader.context()));
        say("free by another", cuMemFree_v2(other));
      }).join();
    });
    if (more != 0) say("free what was made in it", cuMemFree_v2(more));
    for (const CUdeviceptr each : {memory, other}) say("free afterwards", cuMemFree_v2(each));
  }
}

}  // namespace

int main() {
  say("init", cuInit(0));
  Reader reader;
  Reader other;
  for (const std::size_t bytes : {std::size_t{4096}, size_bytes}) {
    free_with_current(reader, other.context(), bytes);
    free_with_current(reader, nullptr, bytes);
  }
  free_in_stream_order(reader);
  free_during_captures(reader);
  return 0;
}
