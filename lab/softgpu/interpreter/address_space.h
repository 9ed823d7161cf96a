// SPDX-License-Identifier: Apache-2.0
/// The software GPU's page tables: GPU virtual addresses to host memory, with access rights.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>

#include "softgpu/interpreter/gpu_fault.h"

namespace firebreak::softgpu {

enum class PageAccess { None, ReadOnly, ReadWrite };

/// One mapped range. `keep_alive` owns the host memory: a kernel that holds a Translation may still touch it
/// after an unmap, as hardware may until the TLB invalidate, so the memory goes only with the last reference.
struct Translation {
  std::uint64_t begin = 0;  ///< GPU virtual address
  std::uint64_t end = 0;    ///< one past the last byte
  std::byte* host = nullptr;
  PageAccess access = PageAccess::None;
  std::shared_ptr<void> keep_alive;
  bool managed = false;  ///< memory that a FaultHandler put there: no program asked for it
};

/// An access for which the page tables have nothing.
struct PageFault {
  std::uint64_t address = 0;
  GpuAccess access = GpuAccess::None;
  bool replayable = true;  ///< false: a copy engine's or the host engine's
};

struct FaultAnswer {
  enum class Kind {
    Fatal,
    Serviced,  ///< try again: there is memory now
    Sparse,    ///< reads are zero, writes vanish
  };
  Kind kind = Kind::Fatal;
  std::uint64_t sparse_end = 0;  ///< one past the last sparse byte
};

/// This interface may help where a page is missing. Any thread calls it, and it may take its time.
class FaultHandler {
 public:
  virtual ~FaultHandler() = default;
  virtual FaultAnswer handle(const PageFault& fault) = 0;
};

/// Thread safe. Readers cache Translations and drop them when `generation()` changes (the TLB invalidate).
class AddressSpace {
 public:
  /// False when the range overlaps a mapped one.
  bool map(Translation range);
  /// Removes the mappings that lie wholly inside [begin, begin + size); false when one straddles its edge.
  bool unmap(std::uint64_t begin, std::uint64_t size);
  /// Changes the rights of the mappings that make up the range; false (and nothing changed) when part of it
  /// is not mapped or a mapping straddles its edge.
  bool protect(std::uint64_t begin, std::uint64_t size, PageAccess access);
  /// The mapping that holds `address`, with access None treated as absent.
  std::optional<Translation> find(std::uint64_t address) const;
  /// The caller sets the handler before the first access; with null every fault is fatal. The handler
  /// outlives the address space.
  void set_fault_handler(FaultHandler* handler) { handler_ = handler; }
  FaultAnswer handle_fault(const PageFault& fault) const {
    return handler_ != nullptr ? handler_->handle(fault) : FaultAnswer{};
  }
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Translation> ranges_;  // by begin
  std::atomic<std::uint64_t> generation_{1};
  FaultHandler* handler_ = nullptr;
};

}  // namespace firebreak::softgpu
