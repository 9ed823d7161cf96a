// SPDX-License-Identifier: Apache-2.0
/// libfirebreak-torch: the allocation functions that PyTorch calls without saying for whom.
#include <firebreak/torch.h>

#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace {

/// The process has this much of one kind of memory. Whoever uses it holds the allocator's lock.
class Pool {
 public:
  Pool(fb_memory memory, const char* name) : memory_(memory), name_(name) {}

  /// 0: it failed.
  std::uint64_t allocate(fb_session* session, std::uint64_t size_bytes, std::int64_t timeout_ms) {
    const auto free = free_.lower_bound({size_bytes, 0});
    if (free != free_.end() && free->first == size_bytes) return free_.extract(free).value().second;
    const std::string name =
        std::string("torch.") + name_ + "." + std::to_string(count_) + "." + std::to_string(size_bytes);
    std::uint64_t address = 0;
    if (fb_alloc_as(session, name.c_str(), size_bytes, memory_, timeout_ms, &address) != FB_OK) return 0;
    ++count_;
    sizes_.emplace(address, size_bytes);
    return address;
  }

  /// Memory that is not ours, or free already, is left alone.
  void free(std::uint64_t address) {
    const auto found = sizes_.find(address);
    if (found != sizes_.end()) free_.emplace(found->second, address);
  }

 private:
  fb_memory memory_;
  const char* name_;
  std::uint64_t count_ = 0;
  std::map<std::uint64_t, std::uint64_t> sizes_;            ///< This maps what was ever allocated, by its
                                                            ///< address.
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_;  ///< size and address
};

/// The process's, since PyTorch's functions have no parameter for it.
struct Allocator {
  std::mutex mutex;  ///< guards all below
  fb_session* session = nullptr;
  std::int64_t timeout_ms = -1;
  Pool weights{FB_MEMORY_WEIGHTS, "weights"};
  Pool state{FB_MEMORY_STATE, "state"};
};

Allocator& allocator() {
  static Allocator* the_process_has_one = new Allocator;  // never destroyed: PyTorch frees until the very end
  return *the_process_has_one;
}

void* allocate(Pool Allocator::*pool, std::size_t size_bytes) {
  try {
    Allocator& its = allocator();
    const std::lock_guard lock(its.mutex);
    if (its.session == nullptr || size_bytes == 0) return nullptr;
    return reinterpret_cast<void*>((its.*pool).allocate(its.session, size_bytes, its.timeout_ms));
  } catch (const std::exception&) {
    return nullptr;  // an exception would leave through PyTorch's C function
  }
}

}  // namespace

fb_status fb_torch_attach(fb_session* session, int64_t timeout_ms) {
  Allocator& its = allocator();
  const std::lock_guard lock(its.mutex);
  if (session != nullptr && its.session != nullptr && its.session != session)
    return FB_ERROR_INVALID_ARGUMENT;
  its.session = session;
  its.timeout_ms = timeout_ms;
  return FB_OK;
}

void* fb_torch_allocate_weights(size_t size_bytes, int /*device*/, void* /*stream*/) {
  return allocate(&Allocator::weights, size_bytes);
}

void* fb_torch_allocate_state(size_t size_bytes, int /*device*/, void* /*stream*/) {
  return allocate(&Allocator::state, size_bytes);
}

void fb_torch_free(void* address, size_t /*size_bytes*/, int /*device*/, void* /*stream*/) {
  try {
    Allocator& its = allocator();
    const std::lock_guard lock(its.mutex);
    its.weights.free(reinterpret_cast<std::uint64_t>(address));
    its.state.free(reinterpret_cast<std::uint64_t>(address));
  } catch (const std::exception&) {
    return;  // The block is then not given out again.
  }
}
