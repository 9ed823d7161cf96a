// SPDX-License-Identifier: Apache-2.0
/// The keeper of a tenant's GPU memory. A vault knows the tenant's allocations and has their exported
/// descriptors, or somebody else has them for it; and no CUDA context: while a descriptor is open the memory
/// behind it stays, whatever becomes of the processes that mapped it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "shared/abi/wire.h"

namespace firebreak::vault {

/// One allocation: `size_bytes` of GPU memory that every process of the tenant maps at `address`.
struct Entry {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  abi::Memory memory = abi::Memory::State;
  os::Fd descriptor;
  bool is_put_away = false;  ///< somebody else has the descriptor
};

/// The allocations of one tenant. Owned by the agent's thread; not thread safe.
class Vault {
 public:
  /// Largest number of allocations a tenant: one descriptor each is held, here or elsewhere.
  static constexpr std::size_t entries_max = 1024;

  /// `quota_bytes`: of all allocations together; 0: no limit.
  explicit Vault(std::uint64_t quota_bytes = 0) : quota_bytes_(quota_bytes) {}

  /// Takes an allocation in. InvalidArgument when nobody has a descriptor of it, it has no size, an address
  /// that is not a multiple of 2 MiB, or overlaps another; when the name is taken; ResourceExhausted beyond
  /// entries_max or the quota, of which `bytes_elsewhere` are used by what is no entry of this one.
  Status add(Entry entry, std::uint64_t bytes_elsewhere = 0);
  /// Somebody else has the descriptor of that one, where it is here.
  void put_away(std::string_view name);
  /// Nobody has a descriptor of that one any more.
  void forget(std::string_view name);
  /// Returns the number that it has itself.
  std::size_t descriptors_here() const { return descriptors_here_; }
  std::span<const Entry> entries() const { return entries_; }
  std::uint64_t total_bytes() const;

  std::uint64_t quota_bytes() const { return quota_bytes_; }

 private:
  std::uint64_t quota_bytes_;
  std::vector<Entry> entries_;
  std::size_t descriptors_here_ = 0;
};

}  // namespace firebreak::vault
