// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/context.h"

#include <algorithm>
#include <utility>

#include "ground/base/units.h"

namespace firebreak::softgpu::driver {

namespace {

const CUstream legacy_handle = reinterpret_cast<CUstream>(CU_STREAM_LEGACY_AS_INT);
const CUstream per_thread_handle = reinterpret_cast<CUstream>(CU_STREAM_PER_THREAD_AS_INT);

void depend_on_last(Work& work, const Stream& stream) {
  if (CompletionPointer last = stream.last(); last && !last->done())
    work.dependencies.push_back(std::move(last));
}

}  // namespace

std::uint64_t context_memory_bytes(std::optional<unsigned int> multiprocessors, std::size_t stack_bytes) {
  constexpr unsigned int few = 8;
  const bool small = multiprocessors && *multiprocessors <= few;
  if (stack_bytes == 0) return (small ? 48 : 254) * mib;
  return (small ? 64 : 519) * mib;
}

Context::Context(std::shared_ptr<const StreamHost> host, std::shared_ptr<SharedGpu> account,
                 const ContextOptions& options, std::uint64_t id)
    : host_(std::move(host)), account_(std::move(account)), options_(options), id_(id) {
  if (options_.primary == nullptr)
    count_memory(context_memory_bytes(options_.multiprocessors, limits_.stack_bytes));
}

Context::~Context() {
  for (const auto& stream : all_streams()) stream->close();
  count_memory(0);
}

void Context::count_memory(std::uint64_t bytes) {
  account_->count_context_memory(static_cast<std::int64_t>(bytes) -
                                 static_cast<std::int64_t>(counted_bytes_));
  counted_bytes_ = bytes;
}

CUstream Context::create_stream(const StreamOptions& options) {
  return reinterpret_cast<CUstream>(streams_.add(std::make_shared<Stream>(host_, this, options)));
}

std::shared_ptr<Stream> Context::default_stream() {
  const std::lock_guard lock(mutex_);
  if (!default_stream_) default_stream_ = std::make_shared<Stream>(host_, this, StreamOptions{});
  return default_stream_;
}

std::shared_ptr<Stream> Context::per_thread_stream() {
  const std::lock_guard lock(mutex_);
  auto& stream = per_thread_streams_[std::this_thread::get_id()];
  if (!stream) stream = std::make_shared<Stream>(host_, this, StreamOptions{});
  return stream;
}

std::shared_ptr<Stream> Context::find_stream(CUstream handle) {
  if (handle == nullptr || handle == legacy_handle) return default_stream();
  if (handle == per_thread_handle) return per_thread_stream();
  return streams_.find(handle);
}

namespace {

bool has_work(const Stream& stream) {
  const CompletionPointer last = stream.last();
  return last && !last->done();
}

}  // namespace

bool Context::destroy_stream(CUstream handle) {
  const std::shared_ptr<Stream> stream = streams_.remove(handle);
  if (!stream) return false;
  stream->close();
  const std::lock_guard lock(mutex_);
  std::erase_if(ending_streams_, [](const auto& each) { return !has_work(*each); });
  if (has_work(*stream)) ending_streams_.push_back(stream);
  return true;
}

bool Context::has_stream_at(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto streams = all_streams();
  return std::ranges::any_of(streams, [address](const auto& each) { return each.get() == address; });
}

std::vector<std::shared_ptr<Stream>> Context::all_streams() const {
  std::vector<std::shared_ptr<Stream>> streams = streams_.all();
  if (default_stream_) streams.push_back(default_stream_);
  for (const auto& [thread, stream] : per_thread_streams_) streams.push_back(stream);
  streams.insert(streams.end(), ending_streams_.begin(), ending_streams_.end());
  return streams;
}

CompletionPointer Context::submit(const std::shared_ptr<Stream>& stream, Work work) {
  if (stream->record(work)) return work.completion;
  const std::lock_guard lock(mutex_);
  if (stream == default_stream_) {
    for (const auto& other : all_streams()) {
      if (other != stream && other->options().blocking) depend_on_last(work, *other);
    }
  } else if (stream->options().blocking && default_stream_) {
    depend_on_last(work, *default_stream_);
  }
  CompletionPointer completion = work.completion;
  stream->push(std::move(work));
  return completion;
}

CUresult Context::synchronize() {
  std::vector<CompletionPointer> pending;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& stream : all_streams()) {
      if (CompletionPointer last = stream->last()) pending.push_back(std::move(last));
    }
  }
  for (const CompletionPointer& completion : pending) {
    if (const CUresult error = host_->completions->wait(*completion); error != CUDA_SUCCESS) return error;
  }
  return host_->control->sticky_error();
}

CUresult Context::set_limit(CUlimit limit, std::size_t value) {
  const std::lock_guard lock(mutex_);
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      limits_.stack_bytes = value;
      count_memory(context_memory_bytes(options_.multiprocessors, value));
      return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      limits_.printf_fifo_bytes = value;
      return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      limits_.malloc_heap_bytes = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
}

Answer<std::size_t> Context::limit(CUlimit limit) const {
  const std::lock_guard lock(mutex_);
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return limits_.stack_bytes;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return limits_.printf_fifo_bytes;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return limits_.malloc_heap_bytes;
    default:
      return refuse(CUDA_ERROR_UNSUPPORTED_LIMIT);
  }
}

}  // namespace firebreak::softgpu::driver
