// SPDX-License-Identifier: Apache-2.0
/// Stores to shared memory, in the order in which a reader sees them where the process dies in between.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

namespace firebreak::journal {

/// Linux keeps shared memory in order on one machine; what has to be kept is the order of our own stores.
class SharedStores {
 public:
  /// `after_each`, for tests: called after every store, and in the middle of copies.
  using Watch = std::function<void()>;
  explicit SharedStores(Watch after_each = {}) : after_each_(std::move(after_each)) {}

  /// Plain bytes, in no order among themselves.
  void copy(std::byte* to, std::span<const std::byte> from) const {
    if (from.empty()) return;
    if (!after_each_) {
      std::memcpy(to, from.data(), from.size());
      return;
    }
    for (std::size_t done = 0; done < from.size(); done += watched_bytes) {
      std::memcpy(to + done, from.data() + done, std::min(watched_bytes, from.size() - done));
      after_each_();
    }
  }
  template <class T>
  void copy(T& to, const T& from) const {
    copy(reinterpret_cast<std::byte*>(&to), std::as_bytes(std::span(&from, 1)));
  }

  /// Stores after everything before it, and before everything after it (hence an exchange: a release store
  /// would let later plain stores pass).
  void in_order(std::uint64_t& to, std::uint64_t value) const {
    std::atomic_ref(to).exchange(value, std::memory_order_acq_rel);
    if (after_each_) after_each_();
  }
  void in_order(std::atomic<std::uint64_t>& to, std::uint64_t value) const {
    to.exchange(value, std::memory_order_acq_rel);
    if (after_each_) after_each_();
  }

 private:
  static constexpr std::size_t watched_bytes = 8;
  Watch after_each_;
};

}  // namespace firebreak::journal
