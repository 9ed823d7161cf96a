// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/stream.h"

#include <thread>
#include <utility>

namespace firebreak::softgpu::driver {

namespace {

/// Work counts as in flight from here to the end of the scope.
class InFlight {
 public:
  InFlight(const StreamHost& host, bool counts) : host_(host), counts_(counts) {
    if (counts_) host_.count_work(true);
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  ~InFlight() {
    if (counts_) host_.count_work(false);
  }

 private:
  const StreamHost& host_;
  bool counts_;
};

/// While one lives, its client may write memory.
class Writing {
 public:
  Writing(GpuControl& control, bool counts) : control_(control), counts_(counts) {
    if (counts_) control_.begin_work();
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() {
    if (counts_) control_.end_work();
  }

 private:
  GpuControl& control_;
  bool counts_;
};

WorkOutcome run_unless_stopped(GpuControl& control, const Work& work) {
  const Writing writing(control, work.on_gpu);
  if (control.should_stop()) return WorkStopped{};
  return work.run();
}

}  // namespace

Stream::Stream(std::shared_ptr<const StreamHost> host, Context* context, StreamOptions options)
    : host_(std::move(host)), context_(context), options_(options) {}

void Stream::push(Work work) {
  const std::lock_guard lock(mutex_);
  last_ = work.completion;
  if (stopped_) return;
  queue_.push_back(std::move(work));
  host_->count_waiting(true);
  if (running_) {
    changed_.notify_one();
    return;
  }
  running_ = true;
  std::thread(&Stream::work_off, shared_from_this()).detach();
}

CompletionPointer Stream::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void Stream::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

bool Stream::begin_capture() {
  const std::lock_guard lock(mutex_);
  if (captured_) return false;
  captured_ = std::make_shared<Graph>();
  return true;
}

std::shared_ptr<Graph> Stream::end_capture() {
  const std::lock_guard lock(mutex_);
  return std::exchange(captured_, nullptr);
}

bool Stream::is_captured() const {
  const std::lock_guard lock(mutex_);
  return captured_ != nullptr;
}

bool Stream::record(const Work& work) {
  const std::lock_guard lock(mutex_);
  if (captured_) captured_->add(work);
  return captured_ != nullptr;
}

void Stream::work_off(const std::shared_ptr<Stream>& stream) {
  Work work;
  while (stream->next(work)) {
    if (!stream->execute(work)) return stream->stop();
    stream->host_->completions->complete(*work.completion);
    work = {};
  }
}

/// Nothing waits any more, as the resource manager sees it.
void Stream::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (std::size_t waiting = queue_.size(); waiting > 0; --waiting) host_->count_waiting(false);
  queue_.clear();
}

bool Stream::next(Work& work) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !queue_.empty() || closed_; });
  if (queue_.empty()) return false;
  work = std::move(queue_.front());
  queue_.pop_front();
  host_->count_waiting(false);
  return true;
}

bool Stream::execute(const Work& work) {
  for (const CompletionPointer& dependency : work.dependencies) {
    if (!host_->completions->wait_unless_stopped(*dependency)) return false;
  }
  if (host_->control->should_stop()) return false;
  if (!work.run) return true;
  const InFlight in_flight(*host_, work.on_gpu);
  const WorkOutcome outcome = run_unless_stopped(*host_->control, work);
  if (const auto* fault = std::get_if<WorkFault>(&outcome)) host_->deliver_fault(*fault);
  return std::holds_alternative<WorkDone>(outcome);
}

}  // namespace firebreak::softgpu::driver
