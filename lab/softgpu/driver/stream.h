// SPDX-License-Identifier: Apache-2.0
/// One CUDA stream: a queue, and a thread that works it off in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "softgpu/driver/completion.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/work.h"

namespace firebreak::softgpu::driver {

class Context;
class Stream;

/// Streams that are recorded into one graph. Thread safe, but for what never changes.
struct CaptureUnderWay {
  std::uint64_t id;
  const Stream* origin;
  CUstreamCaptureMode mode;
  std::thread::id thread;
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::atomic<bool> is_valid{true};
};
/// This says where a stream stands in a capture: what it is given next waits for these nodes.
struct CapturePlace {
  std::shared_ptr<CaptureUnderWay> capture;
  GraphNodes after;
};

/// A worker needs this of its process.
struct StreamHost {
  GpuControl* control = nullptr;
  CompletionHub* completions = nullptr;
  std::function<void(bool begins)> count_work;     ///< work of this process on the GPU, for its domain
  std::function<void(bool begins)> count_waiting;  ///< and behind it, in a queue
  std::function<void(bool begins)> count_writing;  ///< This may write memory just now.
  std::function<void(bool begins)> count_losable;  ///< It lasts from its submission to its end, see Work.
  /// Makes the fault happen. True: the process goes on as though the work were done.
  std::function<bool(const WorkFault&)> deliver_fault;
};

/// The range on the hardware; lower numbers are more urgent. The software GPU does not schedule by them.
inline constexpr int least_stream_priority = 0;
inline constexpr int greatest_stream_priority = -5;

struct StreamOptions {
  unsigned int flags = 0;
  int priority = 0;
  bool blocking = true;  ///< ordered with the legacy default stream
};

/// Thread safe. The thread starts with the first work and ends after the last, once the stream is closed; it
/// is detached, since a process may exit with endless kernels on it.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<const StreamHost> host, Context* context, StreamOptions options);

  /// Only Context::submit calls it, which adds the dependencies on other streams.
  void push(Work work);
  /// The end of what was submitted last; null when there was nothing yet.
  CompletionPointer last() const;
  void close();

  /// Work that it is given is recorded there and not done from now on. False means that it is captured
  /// already.
  bool begin_capture(CapturePlace place);
  void end_capture();
  bool is_captured() const;
  /// This is for a stream without a capture.
  CapturePlace capture_place() const;
  /// Work that it is given next waits for these, too, or, with `alone`, for these alone.
  void wait_in_capture(const GraphNodes& nodes, bool alone);
  /// True: the work was recorded.
  bool record(const Work& work);

  const StreamOptions& options() const { return options_; }
  /// The software GPU does nothing by attributes. It keeps them.
  void set_attribute(CUstreamAttrID id, const CUstreamAttrValue& value) {
    const std::lock_guard lock(mutex_);
    attributes_[id] = value;
  }
  CUstreamAttrValue attribute(CUstreamAttrID id) const {
    const std::lock_guard lock(mutex_);
    const auto found = attributes_.find(id);
    return found == attributes_.end() ? CUstreamAttrValue{} : found->second;
  }
  Context* context() const { return context_; }

 private:
  static void work_off(const std::shared_ptr<Stream>& stream);
  bool next(Work& work);
  void stop();
  bool execute(const Work& work);

  std::shared_ptr<const StreamHost> host_;
  Context* context_;
  StreamOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  CompletionPointer last_;
  std::map<CUstreamAttrID, CUstreamAttrValue> attributes_;
  CapturePlace captured_;
  bool running_ = false;
  bool closed_ = false;
  bool stopped_ = false;  ///< by a fault: what is queued is never done
};

}  // namespace firebreak::softgpu::driver
