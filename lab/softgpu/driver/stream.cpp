// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/stream.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace firebreak::softgpu::driver {

namespace {

/// Work that it is given counts from here to the end of the scope.
class Counted {
 public:
  Counted(const std::function<void(bool)>& count, bool counts) : count_(count), counts_(counts) {
    if (counts_) count_(true);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    if (counts_) count_(false);
  }

 private:
  const std::function<void(bool)>& count_;
  bool counts_;
};

/// It counts as writing before it is asked whether it is to stop: whoever tells of a fault waits for its end.
WorkOutcome run_unless_stopped(const StreamHost& host, const Work& work) {
  const Counted writing(host.count_writing, work.on_gpu);
  if (host.control->should_stop()) return WorkStopped{};
  return work.run();
}

}  // namespace

Stream::Stream(std::shared_ptr<const StreamHost> host, Context* context, StreamOptions options)
    : host_(std::move(host)), context_(context), options_(options) {}

void Stream::push(Work work) {
  const std::lock_guard lock(mutex_);
  last_ = work.completion;
  if (stopped_) return;
  if (work.is_lost_with_process) host_->count_losable(true);
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

bool Stream::begin_capture(CapturePlace place) {
  const std::lock_guard lock(mutex_);
  if (captured_.capture) return false;
  captured_ = std::move(place);
  return true;
}

void Stream::end_capture() {
  const std::lock_guard lock(mutex_);
  captured_ = {};
}

bool Stream::is_captured() const {
  const std::lock_guard lock(mutex_);
  return captured_.capture != nullptr;
}

CapturePlace Stream::capture_place() const {
  const std::lock_guard lock(mutex_);
  return captured_;
}

void Stream::wait_in_capture(const GraphNodes& nodes, bool alone) {
  const std::lock_guard lock(mutex_);
  if (alone) captured_.after.clear();
  for (const auto& node : nodes) {
    if (std::ranges::find(captured_.after, node) == captured_.after.end()) captured_.after.push_back(node);
  }
}

bool Stream::record(const Work& work) {
  const std::lock_guard lock(mutex_);
  if (!captured_.capture) return false;
  NodeContent content = work.node != nullptr
                            ? *work.node
                            : NodeContent{OtherNode{CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work.again()}};
  captured_.after = {captured_.capture->graph->add(std::move(content), captured_.after)};
  return true;
}

void Stream::work_off(const std::shared_ptr<Stream>& stream) {
  Work work;
  while (stream->next(work)) {
    if (!stream->execute(work)) return stream->stop();
    if (work.is_lost_with_process) stream->host_->count_losable(false);
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
  const Counted in_flight(host_->count_work, work.on_gpu);
  const WorkOutcome outcome = run_unless_stopped(*host_, work);
  if (const auto* fault = std::get_if<WorkFault>(&outcome)) return host_->deliver_fault(*fault);
  return std::holds_alternative<WorkDone>(outcome);
}

}  // namespace firebreak::softgpu::driver
