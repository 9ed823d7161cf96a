// SPDX-License-Identifier: Apache-2.0
/// Variables of the program's code whose address it has taken, as the CUDA runtime does for copies to a
/// symbol.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/virtual/objects.h"

namespace firebreak::virtual_driver {

/// One of them. It lies somewhere else in each instance, so the program keeps the address that it was given
/// first.
struct TakenVariable {
  Object* code = nullptr;  ///< a module or library
  std::string name;
  CUdeviceptr seen = 0;  ///< its begin, as the program has it
  std::size_t size_bytes = 0;
  std::array<std::atomic<CUdeviceptr>, slots_max> in{};  ///< its begin in each instance; 0: not known yet
  bool is_known = false;  ///< of who reads code alone: its code says what it is
  /// Somebody may have written it whose bytes we have not seen.
  std::atomic<bool> is_unknown{false};
  /// What the program has written since its code was loaded, and which of these bytes it has. Guarded by the
  /// mutex of TakenVariables.
  std::string content;
  std::vector<bool> is_written;

  bool is_gone() const { return code->is_gone.load(); }
  bool holds(CUdeviceptr address) const { return address - seen < size_bytes; }
};

/// Thread safe. What is added stays until the process ends.
///
/// Kernels use it by its name. The host's address of it is an argument of copies, and there it is replaced.
/// What gives the GPU itself the address, for kernels to use, is not followed.
class TakenVariables {
 public:
  static constexpr std::size_t variables_max = 1024;
  /// Of larger ones it is not kept what the program writes there. Constants have no more (CUDA C++
  /// Programming Guide, "Compute Capabilities").
  static constexpr std::size_t content_max_bytes = std::size_t{64} << 10;

  bool any() const { return count_.load(std::memory_order_acquire) != 0; }

  /// Instance `slot` has it at `address`. The answer is where the program has it. Empty: there is no room
  /// left, or the program has this address of something else.
  std::optional<CUdeviceptr> take(Object& code, std::string_view name, CUdeviceptr address,
                                  std::size_t size_bytes, Slot slot);

  /// What lies in instance `slot` where the program has `address`: of an address in no such variable, itself.
  CUdeviceptr translate(CUdeviceptr address, Slot slot) const;
  /// The other way: where the program has what lies at `address` in that instance.
  CUdeviceptr seen_of(CUdeviceptr address, Slot slot) const;
  bool holds(CUdeviceptr address) const { return find(address) != nullptr; }
  /// As Objects::forget.
  void forget(Slot slot);
  /// The same for a call that may write there, as far as we know.
  CUdeviceptr translate_for_use(CUdeviceptr address, Slot slot);

  /// The program has copied these bytes there. Done, or failed in the middle.
  void wrote(CUdeviceptr address, const void* bytes, std::size_t size_bytes, bool is_done);
  struct Run {
    std::size_t offset_bytes;
    std::string bytes;
  };
  /// What it has written to it so far, in the order of the offsets.
  std::vector<Run> written_to(const TakenVariable& variable);

  /// Those that are not gone.
  void for_each(const std::function<void(TakenVariable&)>& look) const;

 private:
  /// Null: it is in none. Costs next to nothing for addresses that are far from all of them.
  TakenVariable* find(CUdeviceptr address) const {
    if (!any() || address < lowest_.load() || address >= end_.load()) [[likely]]
      return nullptr;
    return look_up(address);
  }
  TakenVariable* look_up(CUdeviceptr address) const;

  std::mutex mutex_;
  std::atomic<std::size_t> count_{0};
  std::atomic<CUdeviceptr> lowest_{~CUdeviceptr{0}};
  std::atomic<CUdeviceptr> end_{0};
  std::array<std::unique_ptr<TakenVariable>, variables_max> all_;  ///< the first `count_` are constant
};

}  // namespace firebreak::virtual_driver
