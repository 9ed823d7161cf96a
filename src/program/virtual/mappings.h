// SPDX-License-Identifier: Apache-2.0
/// The program's own virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap): what it has
/// reserved, created and mapped, the same in every instance.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ground/os/fd.h"
#include "program/virtual/instance.h"
#include "program/virtual/memory.h"
#include "program/virtual/news.h"

namespace firebreak::virtual_driver {

using MemoryHandle = CUmemGenericAllocationHandle;

/// Why a spare cannot have memory of this kind, a literal; null: it can.
const char* why_not_for_spare(const CUmemAllocationProp& wanted);
/// The same of rights to it.
const char* why_not_for_spare(std::span<const CUmemAccessDesc> rights);

/// Thread safe. It asks who the receiver is while nobody brings anything to one. In each instance that has a
/// piece of memory, one reference to it is ours for as long as the program has a handle or a mapping of it:
/// so the program's references are counted here alone, and its number of it stays the same.
class Mappings {
 public:
  Mappings(const Receiver& receiver, WindowMemory& memory) : receiver_(receiver), memory_(memory) {}

  // ---- Calls of the program's: what the driver answers to each ----

  /// In the window, unless that has no room: is_in_window(*address).
  CUresult reserve(const Instance& active, std::size_t size_bytes, std::size_t alignment_bytes,
                   CUdeviceptr hint, unsigned long long flags, CUdeviceptr* address);
  CUresult free(const Instance& active, CUdeviceptr address, std::size_t size_bytes);
  /// Such that other instances can have it, too, where `*is_for_spare` says so; false there afterwards: the
  /// driver has refused that, and made it as it was wanted.
  CUresult create(const Instance& active, std::size_t size_bytes, const CUmemAllocationProp* wanted,
                  unsigned long long flags, bool* is_for_spare, MemoryHandle* handle);
  /// The program gets memory that no spare can have, and that the instance calls `own`.
  MemoryHandle add(const Instance& active, MemoryHandle own);
  CUresult release(const Instance& active, MemoryHandle handle);
  CUresult map(const Instance& active, CUdeviceptr address, std::size_t size_bytes, std::size_t offset_bytes,
               MemoryHandle handle, unsigned long long flags);
  CUresult unmap(const Instance& active, CUdeviceptr address, std::size_t size_bytes);
  CUresult set_access(const Instance& active, CUdeviceptr address, std::size_t size_bytes,
                      const CUmemAccessDesc* rights, std::size_t count);
  CUresult access(const Instance& active, CUdeviceptr address, const CUmemLocation* location,
                  unsigned long long* flags);
  CUresult retain(const Instance& active, CUdeviceptr address, MemoryHandle* handle);
  CUresult properties(MemoryHandle handle, CUmemAllocationProp* answer);
  CUresult export_to(const Instance& active, void* shareable_handle, MemoryHandle handle,
                     CUmemAllocationHandleType type, unsigned long long flags);

  /// What the instance calls it. Empty: the program has no such memory.
  std::optional<MemoryHandle> handle_in(Slot slot, MemoryHandle handle);
  /// What the driver's pointer attributes say of a mapping.
  struct Place {
    CUdeviceptr reserved_begin = 0;
    std::size_t reserved_bytes = 0;
    CUmemAllocationHandleType handle_types{};  ///< as the program wanted to share it
  };
  /// Empty: the program has mapped nothing there.
  std::optional<Place> find_place(CUdeviceptr address);

  /// Where the program has mapped memory once, which it cannot have shared with others, to read and write it;
  /// by the addresses. Mappings that touch are one: an array may go on in the next one, so all have to be so.
  std::vector<WindowMemory::Range> all_own();

  // ---- From instance to instance ----

  /// From now on handles of new memory are ours.
  void flipped() { has_flipped_.store(true); }
  /// As WindowMemory::bring_to.
  CUresult bring_to(const Instance& instance, const Instance& active);
  /// As WindowMemory::take_from.
  void take_from(const Instance& instance);
  /// What a dead instance has is gone.
  void forget(Slot slot);

  // ---- While the program rests; no call of its own comes meanwhile ----

  /// As of WindowMemory.
  CUresult make_all_movable(const Instance& active);
  void add_descriptors(std::set<int>* all);
  void let_go();
  CUresult make_again(const Instance& to);
  /// Maps each piece of memory whole in that instance, at addresses that it keeps until hide(): they are the
  /// same each time in between.
  CUresult show(const Instance& instance, std::vector<WindowMemory::Range>* all);
  /// In that instance. `is_over`: the addresses are not needed any more.
  void hide(const Instance& instance, bool is_over);

 private:
  struct Memory {
    MemoryHandle seen = 0;             ///< what the program calls it
    std::size_t size_bytes = 0;        ///< 0: it is not for a spare
    CUdeviceptr shown_at = 0;          ///< 0: nowhere
    CUmemAllocationProp properties{};  ///< as the program sees them
    bool is_for_spare = true;
    os::Fd descriptor;  ///< what others import; empty until the first one is to have it
    std::vector<std::pair<Slot, MemoryHandle>> in;
    std::uint32_t references = 1;  ///< the program's; 0: it is mapped
    std::uint32_t mappings = 0;
  };
  struct Mapping {
    std::size_t size_bytes = 0;
    std::size_t offset_bytes = 0;
    std::shared_ptr<Memory> memory;
    unsigned long long access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    std::vector<std::pair<Slot, unsigned long long>> in;  ///< with the rights there
  };
  /// What the program has given back, in an instance that it has left.
  struct Remains {
    Slot slot;
    CUdeviceptr address = 0;  ///< 0: it is a handle
    std::size_t size_bytes = 0;
    MemoryHandle own = 0;
  };

  std::unique_lock<std::mutex> lock_for_caller();
  MemoryHandle add_memory(const std::shared_ptr<Memory>& memory, Slot slot, MemoryHandle own);
  std::shared_ptr<Memory> find(MemoryHandle handle) const;
  bool is_reserved(CUdeviceptr address, std::size_t size_bytes) const;
  bool is_refused(CUdeviceptr address, std::size_t size_bytes) const;
  std::map<CUdeviceptr, Mapping>::iterator mapping_at(CUdeviceptr address);
  const Instance* user(Slot slot, const Instance& active) const;
  void end_mapping(const Instance& active, CUdeviceptr address, Mapping& mapping);
  void end_if_unused(const Instance& active, const std::shared_ptr<Memory>& memory);
  static CUresult make_movable(Memory& memory, MemoryHandle own, const Instance& active);
  CUresult bring(Memory& memory, const Instance& instance, const Instance& active);
  CUresult bring(CUdeviceptr address, Mapping& mapping, const Instance& instance, const Instance& active);
  template <class Map, class Bring>
  CUresult bring_each(Map& all, const Bring& bring_one);

  const Receiver& receiver_;
  WindowMemory& memory_;  ///< takes its own lock, after ours
  std::atomic<bool> has_flipped_{false};
  std::atomic<int> callers_waiting_{0};
  AtOnce exports_;
  std::mutex mutex_;                                          ///< of what follows
  std::map<CUdeviceptr, std::size_t> reservations_;           ///< begin -> size
  std::map<CUdeviceptr, Mapping> mappings_;                   ///< by where they begin
  std::map<MemoryHandle, std::shared_ptr<Memory>> memories_;  ///< by what the program calls them
  std::vector<Remains> remains_;
  MemoryHandle next_seen_ = MemoryHandle{0x4642} << 48U;  ///< no driver's
};

}  // namespace firebreak::virtual_driver
