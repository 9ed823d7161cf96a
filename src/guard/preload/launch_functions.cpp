// SPDX-License-Identifier: Apache-2.0
/// The launching functions in the driver's place: they count, and ask the driver. No call here waits or asks
/// Linux for anything, but for a thread's first launch into a stream.
#include <array>
#include <atomic>
#include <cstdint>

#include "guard/preload/driver_functions.h"
#include "guard/preload/real_function.h"
#include "os/background_thread.h"

using firebreak::abi::GuardLaunches;
using firebreak::guard::LaunchWords;
using firebreak::guard::RealFunction;
using firebreak::guard::words_of_process;
using firebreak::guard::WorkLog;

namespace {

/// What a thread remembers holds as long as its number is this one: of a stream's slot, and of a kernel's
/// name. Relaxed: who may use a handle has heard of it from whoever destroyed the one before.
std::atomic<std::uint64_t> streams_age{1};
std::atomic<std::uint64_t> kernels_age{1};

struct KnownStream {
  CUstream stream;
  std::uint64_t age;  ///< 0: nothing is known
  GuardLaunches* slot;
};
struct KnownKernel {
  CUfunction function;
  std::uint64_t age;
  std::uint16_t index;
};
/// Plain data, so that no access asks whether it was constructed.
struct Known {
  std::array<KnownStream, 8> streams;  ///< of functions with the legacy default stream
  std::array<KnownStream, 8> per_thread_streams;
  std::array<KnownKernel, 16> kernels;
};
[[gnu::tls_model("initial-exec")]] thread_local constinit Known known{};

/// Gives the thread's slots back at its end.
struct ThreadEnd {
  bool wanted = false;
  ~ThreadEnd() {
    for (KnownStream& each : known.streams) each.age = 0;
    for (KnownStream& each : known.per_thread_streams) each.age = 0;
    LaunchWords* const words = wanted ? words_of_process() : nullptr;
    if (words != nullptr) words->log().thread_ended(reinterpret_cast<WorkLog::Thread>(&known));
  }
};
thread_local ThreadEnd thread_end;

std::size_t place(const void* handle, std::size_t places) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  return (number >> 4 ^ number >> 9) % places;
}

/// A child has no thread that puts words, and the page is its parent's.
void forget_everything() { streams_age.fetch_add(1, std::memory_order_relaxed); }

void stop_words() {
  if (LaunchWords* const words = words_of_process()) words->stop();
}

[[gnu::noinline]] GuardLaunches* find_slot(CUstream stream, bool per_thread, KnownStream& entry) {
  const std::uint64_t age = streams_age.load(std::memory_order_relaxed);
  LaunchWords* const words = words_of_process();
  if (words == nullptr) {
    entry = {stream, age, nullptr};
    return nullptr;
  }
  static const bool prepared = [] {
    firebreak::os::run_in_children(&forget_everything);
    firebreak::os::run_at_exit(&stop_words);
    return true;
  }();
  thread_end.wanted = prepared;
  GuardLaunches* const slot = words->slot(reinterpret_cast<WorkLog::Thread>(&known), stream, per_thread);
  if (slot != nullptr || words->log().is_full()) entry = {stream, age, slot};
  return slot;
}

[[gnu::noinline]] std::uint16_t find_kernel(CUfunction function, KnownKernel& entry) {
  LaunchWords* const words = words_of_process();
  if (words == nullptr) return 0;
  const std::uint64_t age = kernels_age.load(std::memory_order_relaxed);
  entry = {function, age, words->kernel(function)};
  return entry.index;
}

template <bool per_thread>
GuardLaunches* slot_of(CUstream stream) {
  auto& all = per_thread ? known.per_thread_streams : known.streams;
  KnownStream& entry = all[place(stream, all.size())];
  const bool is_it = entry.stream == stream && entry.age == streams_age.load(std::memory_order_relaxed);
  return is_it ? entry.slot : find_slot(stream, per_thread, entry);
}

std::uint16_t kernel_of(CUfunction function) {
  KnownKernel& entry = known.kernels[place(function, known.kernels.size())];
  const bool is_it = entry.function == function && entry.age == kernels_age.load(std::memory_order_relaxed);
  return is_it ? entry.index : find_kernel(function, entry);
}

/// One launch: begun when it is made, launched at its end. Only this thread counts in the slot, so plain
/// loads and stores suffice; released, so that whoever sees a number sees what was stored before.
class Launch {
 public:
  Launch(GuardLaunches* slot, std::uint16_t kernel) : slot_(slot) {
    if (slot_ == nullptr) return;
    const std::uint32_t before = slot_->begun.load(std::memory_order_relaxed);
    slot_->kernel[before % firebreak::abi::guard_launches_kept].store(kernel, std::memory_order_relaxed);
    slot_->begun.store(before + 1, std::memory_order_release);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() {
    if (slot_ != nullptr)
      slot_->launched.store(slot_->launched.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  GuardLaunches* slot_;
};

template <bool per_thread, class Function, class... Arguments>
CUresult launch(RealFunction<Function>& real, CUfunction kernel, CUstream stream, Arguments... arguments) {
  const Function function = real.get();
  if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
  GuardLaunches* const slot = slot_of<per_thread>(stream);
  const bool has_name = slot != nullptr && kernel != nullptr;
  const Launch counted(slot, has_name ? kernel_of(kernel) : std::uint16_t{0});
  return function(arguments...);
}

constinit RealFunction<PFN_cuLaunchKernel> launch_kernel{"cuLaunchKernel"};
constinit RealFunction<PFN_cuLaunchKernel> launch_kernel_ptsz{"cuLaunchKernel_ptsz"};
constinit RealFunction<PFN_cuLaunchKernelEx> launch_kernel_ex{"cuLaunchKernelEx"};
constinit RealFunction<PFN_cuLaunchKernelEx> launch_kernel_ex_ptsz{"cuLaunchKernelEx_ptsz"};
constinit RealFunction<PFN_cuLaunchCooperativeKernel> launch_cooperative{"cuLaunchCooperativeKernel"};
constinit RealFunction<PFN_cuLaunchCooperativeKernel> launch_cooperative_ptsz{
    "cuLaunchCooperativeKernel_ptsz"};
constinit RealFunction<PFN_cuGraphLaunch> launch_graph{"cuGraphLaunch"};
constinit RealFunction<PFN_cuGraphLaunch> launch_graph_ptsz{"cuGraphLaunch_ptsz"};

CUstream stream_of(const CUlaunchConfig* config) { return config == nullptr ? nullptr : config->hStream; }

}  // namespace

namespace firebreak::guard {

void forget_streams() { streams_age.fetch_add(1, std::memory_order_relaxed); }
void forget_kernels() { kernels_age.fetch_add(1, std::memory_order_relaxed); }

}  // namespace firebreak::guard

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream stream, void** parameters, void** extra) {
  return launch<false>(launch_kernel, function, stream, function, grid_x, grid_y, grid_z, block_x, block_y,
                       block_z, shared_bytes, stream, parameters, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                             void** parameters, void** extra) {
  return launch<true>(launch_kernel_ptsz, function, stream, function, grid_x, grid_y, grid_z, block_x,
                      block_y, block_z, shared_bytes, stream, parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  return launch<false>(launch_kernel_ex, function, stream_of(config), config, function, parameters, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters,
                               void** extra) {
  return launch<true>(launch_kernel_ex_ptsz, function, stream_of(config), config, function, parameters,
                      extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void** parameters) {
  return launch<false>(launch_cooperative, function, stream, function, grid_x, grid_y, grid_z, block_x,
                       block_y, block_z, shared_bytes, stream, parameters);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                        void** parameters) {
  return launch<true>(launch_cooperative_ptsz, function, stream, function, grid_x, grid_y, grid_z, block_x,
                      block_y, block_z, shared_bytes, stream, parameters);
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return launch<false>(launch_graph, nullptr, stream, graph, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  return launch<true>(launch_graph_ptsz, nullptr, stream, graph, stream);
}
