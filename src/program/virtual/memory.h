// SPDX-License-Identifier: Apache-2.0
/// The program's memory on the GPU: the same memory at the same addresses in every instance.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "ground/os/fd.h"
#include "program/virtual/addresses.h"
#include "program/virtual/instance.h"
#include "program/virtual/news.h"

namespace firebreak::virtual_driver {

/// Who has, or is being given, what the program has, besides the instance that works: the spare, or what will
/// be one. What the program gives back has to go there, too. Null: there is none.
using Receiver = std::atomic<const Instance*>;

/// Thread safe. It asks who the receiver is while nobody brings memory to one.
class WindowMemory {
 public:
  explicit WindowMemory(const Receiver& receiver) : receiver_(receiver) {}

  /// Where the program gets memory: a whole number of blocks, or, of half a block or less, a piece of one.
  /// What the driver answers where it has none. `context`: which of the program's it is for, as it calls
  /// that.
  CUresult allocate(const Instance& active, std::uint64_t size_bytes, std::uintptr_t context,
                    CUdeviceptr* address);
  /// Takes it back, in every instance that has it. Nobody may be using it. False: not ours.
  bool free(CUdeviceptr address, const Instance& active);
  /// All that is of that context.
  void free_all_of(std::uintptr_t context, const Instance& active);

  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t size_bytes = 0;
    std::uintptr_t context = 0;
    unsigned long long id = 0;  ///< no other allocation has or had it, of ours or of the driver's
  };
  /// The allocation that holds the address, as the program asked for it.
  std::optional<Range> find(std::uint64_t address) const;

  /// All of them, by their addresses.
  std::vector<Range> all() const;

  /// Addresses for what is not ours to map. Empty: there is no room.
  std::optional<std::uint64_t> reserve(std::uint64_t size_bytes, std::uint64_t alignment_bytes);
  void give_back(std::uint64_t begin);

  /// The host's memory that the program has pinned, by us or by cuMemHostRegister.
  void add_host(void* host, std::size_t size_bytes, unsigned int flags, Slot slot);
  /// False: not known.
  bool remove_host(void* host);
  /// Whether all of it lies in one such piece: the GPU reads and writes it in its own time.
  bool is_pinned(std::uint64_t address, std::uint64_t size_bytes) const;
  /// All of those, by their addresses.
  std::vector<Range> hosts() const;

  /// Maps there what that instance does not have yet. The first thing that failed. What no instance has been
  /// given before comes from `active`, which has to live for that. The program's own calls come in between.
  CUresult bring_to(const Instance& instance, const Instance& active);
  /// From then on the block that holds the address does not need `active` for that any more. False: that
  /// failed.
  bool make_movable(CUdeviceptr address, const Instance& active);
  /// Takes everything out of an instance that nobody uses any more. Its memory is not its context's: without
  /// this what the program frees later would stay.
  void take_from(const Instance& instance);
  /// What a dead instance has is gone.
  void forget(Slot slot);
  /// How much there is, in bytes.
  std::uint64_t size_bytes() const;

  // ---- While the program rests; no call of its own comes meanwhile ----

  /// All that is mapped, whole blocks.
  std::vector<Range> blocks() const;
  /// From then on no block needs `active` to be imported elsewhere.
  CUresult make_all_movable(const Instance& active);
  /// Numbers of what others import.
  void add_descriptors(std::set<int>* all) const;
  /// Nobody imports it any more: it is gone where no instance has it.
  void let_go();
  /// Blocks that are nowhere any more are made there, with no content. What the driver answers to the first
  /// that it does not make.
  CUresult make_again(const Instance& to);

 private:
  struct Block {
    std::uint64_t size_bytes = 0;
    os::Fd memory;                      ///< what others import; empty until the first one is to have it
    std::vector<Slot> has_it;           ///< instances in which it is mapped
    std::uint64_t pieces_of_bytes = 0;  ///< 0: one allocation
    std::vector<bool> taken;            ///< pieces
    std::uint64_t asked_for_bytes = 0;
    std::uintptr_t context = 0;
    unsigned long long id = 0;
  };
  struct Piece {
    std::uint64_t size_bytes = 0;  ///< what was asked for
    std::uintptr_t context = 0;
    unsigned long long id = 0;
  };
  struct Host {
    std::size_t size_bytes = 0;
    unsigned int flags = 0;
    std::vector<Slot> has_it;
  };

  CUresult add_block(const Instance& active, std::uint64_t size_bytes, std::uint64_t* begin);
  CUresult take_piece(const Instance& active, const Piece& piece, CUdeviceptr* address);
  bool free_locked(CUdeviceptr address, const Instance& active);
  static CUresult export_block(const Instance& active, std::uint64_t begin, Block& block);
  CUresult bring_next_block(const Instance& instance, const Instance& active, std::uint64_t* from,
                            bool* is_over);
  std::unique_lock<std::mutex> lock_for_caller() const;
  std::map<std::uint64_t, Block>::const_iterator block_of(std::uint64_t address) const;

  const Receiver& receiver_;
  AtOnce exports_;
  mutable std::mutex mutex_;
  mutable std::atomic<int> callers_waiting_{0};
  Addresses addresses_{window_begin, window_bytes};
  unsigned long long last_id_ = 1ULL << 61U;  ///< The driver counts from 1.
  std::map<std::uint64_t, Block> blocks_;     ///< by where they begin
  std::map<std::uint64_t, Piece> pieces_;     ///< likewise
  /// What the program has given back, in an instance that it has left.
  struct Remains {
    Slot slot;
    std::uint64_t begin;
    std::uint64_t size_bytes;
  };
  std::vector<Remains> remains_;
  std::map<void*, Host> hosts_;
};

}  // namespace firebreak::virtual_driver
