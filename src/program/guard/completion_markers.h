// SPDX-License-Identifier: Apache-2.0
/// Puts a marker behind launches, so that the outside sees when they have ended, also after the process's
/// death: a stream write into the guard page, queued by a thread of ours some milliseconds after the launch
/// (seen on an H100: the marker of a killed process arrives exactly when its kernel ends, for as long as
/// somebody holds its descriptors).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "ground/base/clock.h"
#include "program/cuda/driver.h"
#include "program/guard/work_log.h"
#include "shared/abi/cuda_driver_functions.h"
#include "shared/abi/guard_page.h"

namespace firebreak::guard {

/// 0: launches are not counted, and nobody knows when they have ended.
inline constexpr const char* markers_variable = "FIREBREAK_GUARD_MARKERS";

struct CompletionMarkersPace {
  Nanoseconds busy = std::chrono::milliseconds(5);   ///< between two rounds, while something changes
  Nanoseconds idle = std::chrono::milliseconds(25);  ///< and when nothing has for long
  Nanoseconds long_idle = std::chrono::seconds(1);
};

/// Thread safe. While a program captures a stream, destroys one, or makes or ends a context, no marker is
/// put; whoever wants to waits at most patience for one that is being put, since the driver may wait for the
/// GPU.
class CompletionMarkers {
 public:
  static constexpr Milliseconds patience{100};

  /// Both outlive it.
  CompletionMarkers(const cuda::Driver& driver, abi::GuardWork& work, CompletionMarkersPace pace = {});
  CompletionMarkers(const CompletionMarkers&) = delete;
  CompletionMarkers& operator=(const CompletionMarkers&) = delete;
  ~CompletionMarkers();

  WorkLog& log() { return log_; }

  /// Whether that is where a marker goes.
  bool is_marker(CUdeviceptr address) const;
  /// For the first launch of a thread into a stream, with its context current. Null and "legacy" are one
  /// stream; `per_thread`: null means the thread's own default stream. Null: launches are not counted.
  abi::GuardLaunches* slot(WorkLog::Thread thread, CUstream stream, bool per_thread);
  /// The index of a kernel's name in the page; the handle is valid now. 0: not known.
  std::uint16_t kernel(CUfunction function);

  /// Runs what waits for, or asks about, all work of the context, and answers its answer.
  template <class Wait>
  CUresult wait_for_all(const Wait& wait_on) {
    return wait_for(log_.under_way(), wait_on);
  }
  /// The same of one stream, which is given as to slot().
  template <class Wait>
  CUresult wait_for_stream(WorkLog::Thread thread, CUstream stream, bool per_thread, const Wait& wait_on) {
    return wait_for(log_.under_way_in(thread, known_stream(stream, per_thread)), wait_on);
  }

  /// A context has come; from the second one on the numbers tell no end, and no marker is put.
  void note_context(CUcontext context);
  /// Runs what ends a context, and answers its answer, while no marker is put.
  template <class End>
  CUresult undisturbed(const End& end) {
    const Pause pause(*this);
    return end();
  }
  /// It has ended, and what was launched in it.
  void context_gone(CUcontext context);
  void stream_created(unsigned int flags);
  template <class Destroy>
  CUresult destroy_stream(CUstream stream, const Destroy& destroy) {
    const Pause pause(*this);
    if (pause) put(log_.due_of(stream));
    const CUresult result = destroy();
    if (result == CUDA_SUCCESS) log_.stream_gone(stream);
    return result;
  }
  template <class Begin>
  CUresult begin_capture(const Begin& begin) {
    const Pause pause(*this);
    const CUresult result = begin();
    if (result == CUDA_SUCCESS) log_.capture_begins();
    return result;
  }
  template <class EndCapture>
  CUresult end_capture(const EndCapture& end) {
    const Pause pause(*this);
    const CUresult result = end();
    const bool goes_on = result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (!goes_on && log_.is_capturing()) log_.capture_ends();
    return result;
  }
  /// No marker is put from now on.
  void stop();

 private:
  class Pause {
   public:
    explicit Pause(CompletionMarkers& markers)
        : markers_(markers), locked_(markers.putting_.try_lock_for(CompletionMarkers::patience)) {}
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause() {
      if (locked_) markers_.putting_.unlock();
    }
    explicit operator bool() const { return locked_; }

   private:
    CompletionMarkers& markers_;
    bool locked_;
  };

  static CUstream known_stream(CUstream stream, bool per_thread);
  template <class Wait>
  CUresult wait_for(const std::vector<WorkLog::Due>& under_way, const Wait& wait_on) {
    const CUresult result = wait_on();
    if (result != CUDA_SUCCESS) return result;
    for (const WorkLog::Due& each : under_way) log_.ended(each);
    return result;
  }
  void start_in(CUcontext context);
  void run(CUcontext context);
  bool prepare(CUcontext context);
  bool is_stopping();
  bool may_take_a_marker(CUstream stream) const;
  bool put(const std::vector<WorkLog::Due>& due);
  /// Whether streams are idle into which no marker may be put.
  void ask(const std::vector<WorkLog::Due>& unmarked);
  bool wait(Nanoseconds pause);

  const cuda::Driver& driver_;
  abi::GuardWork& work_;
  WorkLog log_;
  CompletionMarkersPace pace_;
  PFN_cuStreamGetFlags get_stream_flags_;
  PFN_cuStreamIsCapturing is_stream_capturing_;
  CUresult (*get_function_name_)(const char** name, CUfunction function);
  CUresult (*get_kernel_name_)(const char** name, CUfunction kernel);
  std::timed_mutex putting_;             ///< held while the driver is called for a marker, and by a Pause
  std::atomic<CUdeviceptr> markers_{0};  ///< where the GPU sees `done`; 0: not yet
  std::mutex mutex_;                     ///< guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  CUcontext context_ = nullptr;  ///< the one context
  bool context_gone_ = false;    ///< a later one is another one, even at the same address
  std::thread thread_;
};

}  // namespace firebreak::guard
