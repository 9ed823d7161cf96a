// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace firebreak::softgpu {

/// A second mapping of a program's shared memory, as a driver that pins the pages has: it stays when the
/// program unmaps its own.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  /// Empty: not page aligned, or not memory that can be shared.
  static std::optional<PinnedBuffer> pin(std::uint64_t address, std::size_t size_bytes);
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer();

  std::byte* data() const { return data_; }

 private:
  PinnedBuffer(std::byte* data, std::size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace firebreak::softgpu
