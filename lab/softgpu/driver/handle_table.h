// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace firebreak::softgpu::driver {

/// The live objects behind one kind of opaque handle. A handle is the object's address, but only what is in
/// here is ever dereferenced. Thread safe.
template <class T>
class HandleTable {
 public:
  T* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    T* handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  /// Null for a handle that is not (or no longer) valid.
  std::shared_ptr<T> find(const void* handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  /// Takes the object out; null when it was not there.
  std::shared_ptr<T> remove(const void* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  std::vector<std::shared_ptr<T>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<T>> objects;
    for (const auto& [handle, object] : objects_) objects.push_back(object);
    return objects;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::shared_ptr<T>> objects_;
};

}  // namespace firebreak::softgpu::driver
