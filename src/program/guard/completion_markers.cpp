// SPDX-License-Identifier: Apache-2.0
#include "program/guard/completion_markers.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "ground/os/self.h"

namespace firebreak::guard {
namespace {

template <class Function>
Function find(const cuda::Driver& driver, const char* name) {
  return reinterpret_cast<Function>(driver.symbol(name));
}

constexpr std::size_t words_bytes = offsetof(abi::GuardWork, gaps);

CUstream handle(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

}  // namespace

CompletionMarkers::CompletionMarkers(const cuda::Driver& driver, abi::GuardWork& work,
                                     CompletionMarkersPace pace)
    : driver_(driver),
      work_(work),
      log_(work),
      pace_(pace),
      get_stream_flags_(find<PFN_cuStreamGetFlags>(driver, "cuStreamGetFlags")),
      is_stream_capturing_(find<PFN_cuStreamIsCapturing>(driver, "cuStreamIsCapturing")),
      get_function_name_(find<decltype(get_function_name_)>(driver, "cuFuncGetName")),
      get_kernel_name_(find<decltype(get_kernel_name_)>(driver, "cuKernelGetName")) {
  work_.kernels.store(1);
}

CompletionMarkers::~CompletionMarkers() {
  stop();
  if (thread_.joinable()) thread_.join();
}

/// Not joined: at the process's end the thread may wait in the driver, for ever.
void CompletionMarkers::stop() {
  const Pause pause(*this);
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

/// Its name in the log.
CUstream CompletionMarkers::known_stream(CUstream stream, bool per_thread) {
  if (stream == handle(CU_STREAM_LEGACY_AS_INT)) return nullptr;
  return stream == nullptr && per_thread ? handle(CU_STREAM_PER_THREAD_AS_INT) : stream;
}

abi::GuardLaunches* CompletionMarkers::slot(WorkLog::Thread thread, CUstream stream, bool per_thread) {
  CUcontext context = nullptr;
  if (driver_->cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return nullptr;
  note_context(context);
  start_in(context);
  stream = known_stream(stream, per_thread);
  if (stream == nullptr) return log_.slot(thread, stream, StreamKind::Legacy);
  if (stream == handle(CU_STREAM_PER_THREAD_AS_INT)) return log_.slot(thread, stream, StreamKind::PerThread);
  unsigned int flags = CU_STREAM_DEFAULT;
  if (get_stream_flags_ == nullptr || get_stream_flags_(stream, &flags) != CUDA_SUCCESS) {
    log_.note_gap(abi::GuardWorkUncounted);
    return nullptr;
  }
  const bool independent = (flags & CU_STREAM_NON_BLOCKING) != 0;
  return log_.slot(thread, stream, independent ? StreamKind::Independent : StreamKind::Blocking);
}

/// A library's kernel has a handle of another type, which launches take as well.
std::uint16_t CompletionMarkers::kernel(CUfunction function) {
  for (const auto ask : {get_function_name_, get_kernel_name_}) {
    const char* name = nullptr;
    if (ask != nullptr && ask(&name, function) == CUDA_SUCCESS && name != nullptr) {
      return log_.kernel(std::string(name, strnlen(name, abi::guard_kernel_name_bytes)));
    }
  }
  return 0;
}

void CompletionMarkers::note_context(CUcontext context) {
  const std::lock_guard lock(mutex_);
  if (context_ == nullptr) context_ = context;
  if (!context_gone_ && context_ == context) return;
  log_.note_gap(abi::GuardWorkOtherContext);
  // Markers lie in memory of one context, and a stream of another may come to its marker after that has
  // ended.
  stopping_ = true;
  changed_.notify_all();
}

void CompletionMarkers::context_gone(CUcontext context) {
  {
    const std::lock_guard lock(mutex_);
    if (context_ != context) return;
    context_gone_ = true;
    stopping_ = true;
    changed_.notify_all();
  }
  log_.all_ended();
}

void CompletionMarkers::stream_created(unsigned int flags) {
  if ((flags & CU_STREAM_NON_BLOCKING) == 0) log_.note_blocking_stream();
}

void CompletionMarkers::start_in(CUcontext context) {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable() || stopping_) return;
  auto thread = os::start_background_thread("firebreak-markers", [this, context] { run(context); });
  if (thread) {
    thread_ = std::move(*thread);
  } else {  // the program may have no more threads
    stopping_ = true;
    log_.note_gap(abi::GuardWorkNoMarkers);
  }
}

bool CompletionMarkers::wait(Nanoseconds pause) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, pause, [this] { return stopping_; });
  return !stopping_;
}

void CompletionMarkers::run(CUcontext context) {
  Nanoseconds quiet{};
  while (wait(quiet < pace_.long_idle ? pace_.busy : pace_.idle)) {
    const std::unique_lock lock(putting_);
    if (log_.is_capturing()) continue;
    if (markers_.load() == 0 && !is_stopping() && !prepare(context))
      return log_.note_gap(abi::GuardWorkNoMarkers);
    if (!put(log_.due())) return log_.note_gap(abi::GuardWorkNoMarkers);
    ask(log_.unmarked());
    quiet = log_.settle() ? Nanoseconds{} : quiet + pace_.busy;
  }
}

bool CompletionMarkers::prepare(CUcontext context) {
  constexpr unsigned int flags = CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE;
  CUdeviceptr address = 0;
  const bool ready = driver_->cuCtxSetCurrent(context) == CUDA_SUCCESS &&
                     driver_->cuMemHostRegister(work_.done, words_bytes, flags) == CUDA_SUCCESS &&
                     driver_->cuMemHostGetDevicePointer(&address, work_.done, 0) == CUDA_SUCCESS;
  markers_.store(address);
  return ready;
}

bool CompletionMarkers::is_marker(CUdeviceptr address) const {
  const CUdeviceptr begin = markers_.load();
  return begin != 0 && address - begin < words_bytes;
}

bool CompletionMarkers::is_stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

/// Not while it is captured: that may have begun in a way that we do not see.
bool CompletionMarkers::may_take_a_marker(CUstream stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (is_stream_capturing_ == nullptr) return true;
  return is_stream_capturing_(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE;
}

bool CompletionMarkers::put(const std::vector<WorkLog::Due>& due) {
  const CUdeviceptr markers = markers_.load();
  if (markers == 0 || log_.is_capturing() || is_stopping()) return true;
  for (const WorkLog::Due& each : due) {
    if (!may_take_a_marker(each.stream)) continue;
    const CUdeviceptr marker = markers + each.slot * sizeof(std::uint32_t);
    if (driver_->cuStreamWriteValue32(each.stream, marker, each.value, 0) != CUDA_SUCCESS) return false;
    log_.marked(each);
  }
  return true;
}

/// To ask orders nothing, unlike a marker. But it could make void what is being captured.
void CompletionMarkers::ask(const std::vector<WorkLog::Due>& unmarked) {
  for (const WorkLog::Due& each : unmarked) {
    if (log_.is_capturing() || is_stopping() || !may_take_a_marker(each.stream)) continue;
    if (driver_->cuStreamQuery(each.stream) == CUDA_SUCCESS) log_.ended(each);
  }
}

}  // namespace firebreak::guard
