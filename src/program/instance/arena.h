// SPDX-License-Identifier: Apache-2.0
/// Memory that is one copy's alone, so that all of it goes at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace firebreak::instance {

/// As malloc() and its kin have it. Thread safe. Nothing is given back to Linux one by one, but the pages of
/// large pieces.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { end(); }

  /// Null: there is no more. `alignment_bytes` is a power of two.
  void* allocate(std::size_t size_bytes, std::size_t alignment_bytes = least_alignment_bytes);
  void* allocate_zeroed(std::size_t size_bytes);
  /// Of a piece that is not of here nothing happens.
  void give(void* memory);
  /// How many bytes may be used of a piece of here.
  std::size_t usable_bytes(const void* memory) const;
  bool holds(const void* memory) const {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    return at >= begin_ && at - begin_ < reserved_bytes && begin_ != 0;
  }
  /// Everything goes. Nobody uses any of it any more.
  void end();

  static constexpr std::size_t least_alignment_bytes = 16;

 private:
  /// Addresses alone: Linux counts no memory for them.
  static constexpr std::size_t reserved_bytes = std::size_t{16} << 30;
  static constexpr std::size_t step_bytes = std::size_t{8} << 20;
  static constexpr std::size_t classes = 160;

  struct Header {
    std::uint64_t size_bytes = 0;  ///< of the class; of a piece that was aligned, how far its own header is
    std::uint64_t mark = 0;
  };
  static constexpr std::uint64_t plain_mark = 0x706c61696e;
  static constexpr std::uint64_t aligned_mark = 0x616c69676e6564;
  static_assert(sizeof(Header) == least_alignment_bytes);

  static std::size_t class_of(std::size_t size_bytes, std::size_t& rounded_bytes);
  static Header* header_of(const void* memory);
  void* take(std::size_t size_bytes, bool& is_fresh);
  bool make_usable(std::size_t up_to);

  std::mutex mutex_;  ///< guards what follows
  std::uintptr_t begin_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t usable_bytes_ = 0;
  std::array<void*, classes> free_{};
};

}  // namespace firebreak::instance
