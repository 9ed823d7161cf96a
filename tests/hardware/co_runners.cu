// SPDX-License-Identifier: Apache-2.0
/// Tenants that know nothing of Firebreak and run what firebreak-checker does not: cooperative kernels,
/// clusters, graphs and long kernels, such that fill the GPU, several streams, memory taken and given back.
/// Compares every word of every result, and says the same as firebreak-checker. For a machine with a GPU and
/// a toolkit:
///
///     nvcc -O2 -arch=sm_90 -cudart static -o co_runners tests/hardware/co_runners.cu
///     co_runners KIND FILE    works until that file is there
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <unistd.h>

namespace groups = cooperative_groups;
using Clock = std::chrono::steady_clock;

namespace {

/// One of 16 words, so that the host knows all of them soon.
__host__ __device__ std::uint32_t mixed(std::uint32_t word, unsigned int rounds) {
  word %= 16;
  for (unsigned int i = 0; i < rounds; ++i) word = word * 1664525u + 1013904223u + (word >> 7);
  return word;
}

__global__ void mix(std::uint32_t* words, unsigned int rounds) {
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  words[i] = mixed(i, rounds);
}

/// Each thread reads what one of the next block has written.
__global__ void mix_together(std::uint32_t* words, std::uint32_t* between, unsigned int rounds) {
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  between[i] = mixed(i, rounds);
  groups::this_grid().sync();
  words[i] = between[(i + blockDim.x) % (gridDim.x * blockDim.x)];
}

/// The same within pairs of blocks, by distributed shared memory.
__global__ void __cluster_dims__(2) mix_in_clusters(std::uint32_t* words, unsigned int rounds) {
  __shared__ std::uint32_t own[1024];
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  own[threadIdx.x] = mixed(i, rounds);
  const groups::cluster_group cluster = groups::this_cluster();
  cluster.sync();
  words[i] = *cluster.map_shared_rank(&own[threadIdx.x], cluster.block_rank() ^ 1u);
  cluster.sync();
}

constexpr unsigned int threads = 128;

struct Tenant {
  unsigned int blocks = 1;
  unsigned int rounds = 2000;
  std::vector<cudaStream_t> streams;
  std::vector<std::uint32_t*> words;  ///< one for each stream
  std::uint32_t* between = nullptr;
  cudaGraphExec_t graph = nullptr;

  std::size_t bytes() const { return std::size_t{blocks} * threads * sizeof(std::uint32_t); }
};

std::string error;
bool well(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return true;
  error = std::string(what) + ": " + cudaGetErrorName(result) + ": " + cudaGetErrorString(result);
  return false;
}

/// Queues one step, which leaves its result in each of the tenant's words.
using Step = std::function<bool(Tenant&)>;

bool plain(Tenant& tenant) {
  for (std::size_t s = 0; s < tenant.streams.size(); ++s)
    mix<<<tenant.blocks, threads, 0, tenant.streams[s]>>>(tenant.words[s], tenant.rounds);
  return well(cudaGetLastError(), "launch");
}

bool cooperative(Tenant& tenant) {
  void* arguments[] = {&tenant.words[0], &tenant.between, &tenant.rounds};
  return well(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(mix_together), tenant.blocks, threads,
                                          arguments, 0, tenant.streams[0]),
              "cooperative launch");
}

bool in_clusters(Tenant& tenant) {
  mix_in_clusters<<<tenant.blocks, threads, 0, tenant.streams[0]>>>(tenant.words[0], tenant.rounds);
  return well(cudaGetLastError(), "launch of clusters");
}

bool as_graph(Tenant& tenant) {
  if (tenant.graph == nullptr) {
    cudaGraph_t graph = nullptr;
    if (!well(cudaStreamBeginCapture(tenant.streams[0], cudaStreamCaptureModeThreadLocal), "capture"))
      return false;
    for (int i = 0; i < 4; ++i) plain(tenant);
    if (!well(cudaStreamEndCapture(tenant.streams[0], &graph), "end of the capture")) return false;
    if (!well(cudaGraphInstantiate(&tenant.graph, graph, 0), "instantiate")) return false;
  }
  return well(cudaGraphLaunch(tenant.graph, tenant.streams[0]), "launch of a graph");
}

bool in_new_memory(Tenant& tenant) {
  std::uint32_t* memory = nullptr;
  if (!well(cudaMalloc(&memory, 32 << 20), "cudaMalloc")) return false;
  mix<<<tenant.blocks, threads, 0, tenant.streams[0]>>>(memory, tenant.rounds);
  const bool copied = well(
      cudaMemcpyAsync(tenant.words[0], memory, tenant.bytes(), cudaMemcpyDeviceToDevice, tenant.streams[0]),
      "copy");
  return copied && well(cudaFree(memory), "cudaFree");
}

struct Kind {
  const char* name;
  unsigned int blocks, rounds, streams;
  Step step;
  unsigned int
      shift;  ///< whose word a thread has: so many threads further on; 1: of the other block of a pair
};

const Kind kinds[] = {
    {"small", 1, 20000, 1, plain, 0},
    {"streams", 1, 20000, 4, plain, 0},
    {"full", 1056, 20000, 1, plain, 0},
    {"long", 132, 20000000, 1, plain, 0},
    {"cooperative", 132, 20000, 1, cooperative, threads},
    {"cluster", 132, 20000, 1, in_clusters, 1},
    {"graph", 8, 20000, 1, as_graph, 0},
    {"allocate", 8, 20000, 1, in_new_memory, 0},
};

/// Which thread's word thread `i` has.
unsigned int whose(const Kind& kind, unsigned int i) {
  if (kind.shift == 1) return i / threads % 2 == 0 ? i + threads : i - threads;
  return (i + kind.shift) % (kind.blocks * threads);
}

bool set_up(const Kind& kind, Tenant& tenant) {
  tenant.blocks = kind.blocks;
  tenant.rounds = kind.rounds;
  tenant.streams.resize(kind.streams);
  tenant.words.resize(kind.streams);
  for (unsigned int s = 0; s < kind.streams; ++s) {
    if (!well(cudaStreamCreateWithFlags(&tenant.streams[s], cudaStreamNonBlocking), "stream")) return false;
    if (!well(cudaMalloc(&tenant.words[s], tenant.bytes()), "cudaMalloc")) return false;
  }
  return well(cudaMalloc(&tenant.between, tenant.bytes()), "cudaMalloc");
}

}  // namespace

int main(int count, char** arguments) {
  const Kind* kind = nullptr;
  for (const Kind& each : kinds)
    if (count > 2 && std::strcmp(arguments[1], each.name) == 0) kind = &each;
  if (kind == nullptr) {
    std::fprintf(stderr, "usage: co_runners KIND FILE\n");
    return 2;
  }
  Tenant tenant;
  std::vector<std::uint32_t> right(std::size_t{kind->blocks} * threads), got(right.size());
  std::uint32_t words[16];
  for (unsigned int i = 0; i < 16; ++i) words[i] = mixed(i, kind->rounds);
  for (unsigned int i = 0; i < right.size(); ++i) right[i] = words[whose(*kind, i) % 16];
  unsigned long long launches = 0, wrong = 0;
  double longest_ms = 0, longest_ended_ms = 0;
  const auto begin = Clock::now();
  const auto ms_since = [](Clock::time_point from) {
    return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
  };
  bool goes_on = set_up(*kind, tenant);
  while (goes_on && access(arguments[2], F_OK) != 0) {
    const auto from = Clock::now();
    for (std::size_t s = 0; s < tenant.streams.size();
         ++s)  // in its stream: without one it may come after the kernel
      cudaMemsetAsync(tenant.words[s], 0, tenant.bytes(), tenant.streams[s]);
    goes_on = kind->step(tenant);
    for (std::size_t s = 0; goes_on && s < tenant.streams.size(); ++s) {
      goes_on = well(cudaMemcpyAsync(got.data(), tenant.words[s], tenant.bytes(), cudaMemcpyDeviceToHost,
                                     tenant.streams[s]),
                     "copy to the host") &&
                well(cudaStreamSynchronize(tenant.streams[s]), "cudaStreamSynchronize");
      for (std::size_t i = 0; goes_on && i < got.size(); ++i) wrong += got[i] != right[i];
    }
    const double took_ms = ms_since(from);
    if (launches > 0 && took_ms > longest_ms) longest_ms = took_ms, longest_ended_ms = ms_since(begin);
    if (goes_on && ++launches == 1) std::puts("working"), std::fflush(stdout);
  }
  std::printf(
      "{\"launches\": %llu, \"wrong_words\": %llu, \"longest_ms\": %.3f, \"longest_ended_ms\": %.1f, "
      "\"error\": \"%s\", \"stalls\": []}\n",
      launches, wrong, longest_ms, longest_ended_ms, error.c_str());
  return error.empty() && wrong == 0 ? 0 : 1;
}
