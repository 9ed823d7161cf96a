// SPDX-License-Identifier: Apache-2.0
/// The GPU virtual addresses that are taken. They are numbers: nothing is mapped there in the process itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

namespace firebreak::softgpu::driver {

struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t end() const { return begin + size_bytes; }
};

/// Returns where something of somebody else's that is in the way of a range ends; empty: nothing is.
using FindObstacle = std::function<std::optional<std::uint64_t>(const AddressRange&)>;

/// Thread safe.
class AddressRanges {
 public:
  /// A fixed address may be anything in between.
  static constexpr std::uint64_t lowest = 0x10000;
  static constexpr std::uint64_t highest = std::uint64_t{1} << 47;
  /// Begin of the addresses that nobody asked for: far from what Linux gives to a process, and from what
  /// sanitizers give to a program's own data.
  static constexpr std::uint64_t arena_begin = std::uint64_t{0x2} << 44;
  static constexpr std::uint64_t arena_end = std::uint64_t{0x3} << 44;

  /// Takes a range at `hint` where that is free (0: no wish), else wherever there is room; empty when there
  /// is none. Ranges of `others` are not free: it is asked about ranges that nobody has taken here.
  std::optional<AddressRange> take(std::uint64_t size_bytes, std::uint64_t alignment_bytes,
                                   std::uint64_t hint, const FindObstacle& others = nullptr);
  /// False when exactly that range was not taken.
  bool give(std::uint64_t begin, std::uint64_t size_bytes);
  /// The taken range that holds the address.
  std::optional<AddressRange> find(std::uint64_t address) const;

 private:
  /// Returns where the obstacle of the range ends; empty: nothing is in its way.
  std::optional<std::uint64_t> obstacle_end(const AddressRange& range, const FindObstacle& others) const;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // begin -> size
};

}  // namespace firebreak::softgpu::driver
