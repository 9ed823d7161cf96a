// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/memory.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <thread>

#include "ground/os/descriptors.h"

namespace firebreak::virtual_driver {
namespace {

/// What cuMemAlloc aligns to.
constexpr std::uint64_t smallest_piece_bytes = 512;
constexpr std::uint64_t largest_piece_bytes = block_bytes / 2;

CUmemAllocationProp properties() {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return wanted;
}

/// Maps it with all rights, and gives the handle back: the mapping keeps the memory.
CUresult map(const cuda::Backend& driver, std::uint64_t begin, std::uint64_t size_bytes,
             CUmemGenericAllocationHandle handle) {
  CUresult result = driver.cuMemMap(begin, size_bytes, 0, handle, 0);
  if (result != CUDA_SUCCESS) return result;
  const CUmemAccessDesc access{properties().location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  result = driver.cuMemSetAccess(begin, size_bytes, &access, 1);
  if (result != CUDA_SUCCESS) driver.cuMemUnmap(begin, size_bytes);
  return result;
}

CUresult import(const cuda::Backend& driver, std::uint64_t begin, std::uint64_t size_bytes, int memory) {
  CUmemGenericAllocationHandle handle = 0;
  void* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(memory));
  const CUresult imported =
      driver.cuMemImportFromShareableHandle(&handle, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (imported != CUDA_SUCCESS) return imported;
  const CUresult mapped = map(driver, begin, size_bytes, handle);
  driver.cuMemRelease(handle);
  return mapped;
}

CUresult create(const cuda::Backend& driver, std::uint64_t begin, std::uint64_t size_bytes) {
  const CUmemAllocationProp wanted = properties();
  CUmemGenericAllocationHandle handle = 0;
  if (const CUresult made = driver.cuMemCreate(&handle, size_bytes, &wanted, 0); made != CUDA_SUCCESS)
    return made;
  const CUresult mapped = map(driver, begin, size_bytes, handle);
  driver.cuMemRelease(handle);
  return mapped;
}

/// A descriptor with which other instances import what is mapped there. Where it stays until the memory goes
/// it is in nobody's way. Takes 0.7 to 2 ms on an H100, where an instance that has imported it is refused.
CUresult export_from(const cuda::Backend& driver, std::uint64_t begin, os::Fd* memory) {
  CUmemGenericAllocationHandle handle = 0;
  const CUresult retained = driver.cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(begin));
  if (retained != CUDA_SUCCESS) return retained;
  int exported = -1;
  const CUresult result =
      driver.cuMemExportToShareableHandle(&exported, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result == CUDA_SUCCESS) *memory = os::move_above_limit(os::Fd(exported));
  driver.cuMemRelease(handle);
  return result;
}

bool has(const std::vector<Slot>& slots, Slot slot) { return std::ranges::find(slots, slot) != slots.end(); }

}  // namespace

std::map<std::uint64_t, WindowMemory::Block>::const_iterator WindowMemory::block_of(
    std::uint64_t address) const {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  const auto found = std::prev(after);
  return address - found->first < found->second.size_bytes ? found : blocks_.end();
}

std::unique_lock<std::mutex> WindowMemory::lock_for_caller() const {
  callers_waiting_.fetch_add(1);
  std::unique_lock lock(mutex_);
  callers_waiting_.fetch_sub(1);
  return lock;
}

CUresult WindowMemory::add_block(const Instance& active, std::uint64_t size_bytes, std::uint64_t* begin) {
  const auto address = addresses_.take(size_bytes, block_bytes);
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  Block block;
  block.size_bytes = size_bytes;
  const CUresult made = create(active.driver(), *address, size_bytes);
  if (made != CUDA_SUCCESS) {
    addresses_.give(*address);
    return made;
  }
  block.has_it.push_back(active.slot());
  // Nothing is exported out of a domain that has died. Where it fails, it is tried again later.
  exports_.maybe(SystemClock(), [&] { (void)export_block(active, *address, block); });
  blocks_[*address] = std::move(block);
  *begin = *address;
  return CUDA_SUCCESS;
}

CUresult WindowMemory::take_piece(const Instance& active, const Piece& piece, CUdeviceptr* address) {
  const std::uint64_t piece_bytes = std::max(std::bit_ceil(piece.size_bytes), smallest_piece_bytes);
  const auto take_from = [&](std::uint64_t begin, Block& block) {
    const auto gap = std::ranges::find(block.taken, false);
    if (block.pieces_of_bytes != piece_bytes || gap == block.taken.end()) return false;
    *gap = true;
    *address = begin + static_cast<std::uint64_t>(gap - block.taken.begin()) * piece_bytes;
    pieces_[*address] = piece;
    return true;
  };
  for (auto& [begin, block] : blocks_) {
    if (take_from(begin, block)) return CUDA_SUCCESS;
  }
  std::uint64_t begin = 0;
  if (const CUresult made = add_block(active, block_bytes, &begin); made != CUDA_SUCCESS) return made;
  Block& block = blocks_[begin];
  block.pieces_of_bytes = piece_bytes;
  block.taken.resize(block_bytes / piece_bytes);
  take_from(begin, block);
  return CUDA_SUCCESS;
}

CUresult WindowMemory::allocate(const Instance& active, std::uint64_t size_bytes, std::uintptr_t context,
                                CUdeviceptr* address) {
  if (address == nullptr || size_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (size_bytes > window_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto lock = lock_for_caller();
  if (size_bytes <= largest_piece_bytes)
    return take_piece(active, {size_bytes, context, ++last_id_}, address);
  std::uint64_t begin = 0;
  if (const CUresult made = add_block(active, whole_blocks(size_bytes), &begin); made != CUDA_SUCCESS)
    return made;
  blocks_[begin].asked_for_bytes = size_bytes;
  blocks_[begin].context = context;
  blocks_[begin].id = ++last_id_;
  *address = begin;
  return CUDA_SUCCESS;
}

bool WindowMemory::free(CUdeviceptr address, const Instance& active) {
  const auto lock = lock_for_caller();
  return free_locked(address, active);
}

void WindowMemory::free_all_of(std::uintptr_t context, const Instance& active) {
  const std::lock_guard lock(mutex_);
  std::vector<CUdeviceptr> all;
  for (const auto& [begin, piece] : pieces_) {
    if (piece.context == context) all.push_back(begin);
  }
  for (const auto& [begin, block] : blocks_) {
    if (block.pieces_of_bytes == 0 && block.context == context) all.push_back(begin);
  }
  for (const CUdeviceptr address : all) free_locked(address, active);
}

bool WindowMemory::free_locked(CUdeviceptr address, const Instance& active) {
  const auto known = block_of(address);
  if (known == blocks_.end()) return false;
  const std::uint64_t begin = known->first;
  Block& block = blocks_[begin];
  if (block.pieces_of_bytes != 0) {
    if (pieces_.erase(address) == 0) return false;
    block.taken[(address - begin) / block.pieces_of_bytes] = false;
    if (std::ranges::find(block.taken, true) != block.taken.end()) return true;
  } else if (address != begin) {
    return false;
  }
  for (const Instance* const instance : {&active, receiver_.load()}) {
    if (instance != nullptr && std::erase(block.has_it, instance->slot()) != 0)
      instance->driver().cuMemUnmap(begin, block.size_bytes);
  }
  for (const Slot left : block.has_it) remains_.push_back({left, begin, block.size_bytes});
  blocks_.erase(begin);
  addresses_.give(begin);
  return true;
}

std::optional<WindowMemory::Range> WindowMemory::find(std::uint64_t address) const {
  const auto lock = lock_for_caller();
  const auto block = block_of(address);
  if (block == blocks_.end()) return std::nullopt;
  if (block->second.pieces_of_bytes == 0)
    return Range{block->first, block->second.asked_for_bytes, block->second.context, block->second.id};
  const auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return std::nullopt;
  const auto& [begin, piece] = *std::prev(after);
  if (address - begin >= piece.size_bytes) return std::nullopt;
  return Range{begin, piece.size_bytes, piece.context, piece.id};
}

std::vector<WindowMemory::Range> WindowMemory::all() const {
  const auto lock = lock_for_caller();
  std::vector<Range> found;
  for (const auto& [begin, block] : blocks_)
    if (block.pieces_of_bytes == 0) found.push_back({begin, block.asked_for_bytes, block.context});
  for (const auto& [begin, piece] : pieces_) found.push_back({begin, piece.size_bytes, piece.context});
  std::ranges::sort(found, {}, &Range::begin);
  return found;
}

std::optional<std::uint64_t> WindowMemory::reserve(std::uint64_t size_bytes, std::uint64_t alignment_bytes) {
  if (size_bytes > window_bytes || alignment_bytes > window_bytes) return std::nullopt;
  const auto lock = lock_for_caller();
  return addresses_.take(whole_blocks(size_bytes), std::max(alignment_bytes, block_bytes));
}

void WindowMemory::give_back(std::uint64_t begin) {
  const auto lock = lock_for_caller();
  addresses_.give(begin);
}

void WindowMemory::add_host(void* host, std::size_t size_bytes, unsigned int flags, Slot slot) {
  const std::lock_guard lock(mutex_);
  hosts_[host] = {size_bytes, flags, {slot}};
}

bool WindowMemory::remove_host(void* host) {
  const std::lock_guard lock(mutex_);
  const auto known = hosts_.find(host);
  if (known == hosts_.end()) return false;
  const Instance* const receiver = receiver_.load();
  if (receiver != nullptr && has(known->second.has_it, receiver->slot()))
    receiver->driver().cuMemHostUnregister(host);
  hosts_.erase(known);
  return true;
}

bool WindowMemory::is_pinned(std::uint64_t address, std::uint64_t size_bytes) const {
  const auto lock = lock_for_caller();
  auto after = hosts_.upper_bound(reinterpret_cast<void*>(address));
  if (after == hosts_.begin()) return false;
  --after;
  const std::uint64_t offset = address - reinterpret_cast<std::uintptr_t>(after->first);
  return offset <= after->second.size_bytes && size_bytes <= after->second.size_bytes - offset;
}

std::vector<WindowMemory::Range> WindowMemory::hosts() const {
  const auto lock = lock_for_caller();
  std::vector<Range> found;
  for (const auto& [host, its] : hosts_)
    found.push_back({reinterpret_cast<std::uintptr_t>(host), its.size_bytes, 0});
  return found;
}

CUresult WindowMemory::export_block(const Instance& active, std::uint64_t begin, Block& block) {
  return block.memory ? CUDA_SUCCESS : export_from(active.driver(), begin, &block.memory);
}

bool WindowMemory::make_movable(CUdeviceptr address, const Instance& active) {
  const std::lock_guard lock(mutex_);
  const auto known = block_of(address);
  return known != blocks_.end() && export_block(active, known->first, blocks_[known->first]) == CUDA_SUCCESS;
}

/// The first one from there on that the instance does not have.
CUresult WindowMemory::bring_next_block(const Instance& instance, const Instance& active, std::uint64_t* from,
                                        bool* is_over) {
  const std::lock_guard lock(mutex_);
  const auto is_missing = [&](const auto& each) { return !has(each.second.has_it, instance.slot()); };
  const auto next = std::find_if(blocks_.lower_bound(*from), blocks_.end(), is_missing);
  *is_over = next == blocks_.end();
  if (*is_over) return CUDA_SUCCESS;
  auto& [begin, block] = *next;
  *from = begin + block.size_bytes;
  if (const CUresult exported = export_block(active, begin, block); exported != CUDA_SUCCESS) return exported;
  const CUresult done = import(instance.driver(), begin, block.size_bytes, block.memory.get());
  if (done == CUDA_SUCCESS) block.has_it.push_back(instance.slot());
  return done;
}

CUresult WindowMemory::bring_to(const Instance& instance, const Instance& active) {
  const Slot slot = instance.slot();
  std::uint64_t from = 0;
  for (bool is_over = false; !is_over;) {
    const CUresult done = bring_next_block(instance, active, &from, &is_over);
    if (done != CUDA_SUCCESS) return done;
    while (callers_waiting_.load() != 0) std::this_thread::yield();  // it is the program's turn
  }
  const std::lock_guard lock(mutex_);
  for (auto& [host, known] : hosts_) {
    if (has(known.has_it, slot)) continue;
    const CUresult done = instance.driver().cuMemHostRegister_v2(host, known.size_bytes, known.flags);
    if (done != CUDA_SUCCESS) return done;
    known.has_it.push_back(slot);
  }
  return CUDA_SUCCESS;
}

void WindowMemory::take_from(const Instance& instance) {
  const std::lock_guard lock(mutex_);
  const Slot slot = instance.slot();
  for (auto& [begin, block] : blocks_) {
    if (std::erase(block.has_it, slot) != 0) instance.driver().cuMemUnmap(begin, block.size_bytes);
  }
  for (auto& [host, known] : hosts_) {
    if (std::erase(known.has_it, slot) != 0) instance.driver().cuMemHostUnregister(host);
  }
  for (const Remains& each : remains_) {
    if (each.slot == slot) instance.driver().cuMemUnmap(each.begin, each.size_bytes);
  }
  std::erase_if(remains_, [slot](const Remains& each) { return each.slot == slot; });
}

void WindowMemory::forget(Slot slot) {
  const std::lock_guard lock(mutex_);
  for (auto& [begin, block] : blocks_) std::erase(block.has_it, slot);
  for (auto& [host, known] : hosts_) std::erase(known.has_it, slot);
  std::erase_if(remains_, [slot](const Remains& each) { return each.slot == slot; });
}

std::vector<WindowMemory::Range> WindowMemory::blocks() const {
  const std::lock_guard lock(mutex_);
  std::vector<Range> found;
  for (const auto& [begin, block] : blocks_) found.push_back({begin, block.size_bytes, block.context});
  return found;
}

CUresult WindowMemory::make_all_movable(const Instance& active) {
  const std::lock_guard lock(mutex_);
  for (auto& [begin, block] : blocks_)
    if (const CUresult done = export_block(active, begin, block); done != CUDA_SUCCESS) return done;
  return CUDA_SUCCESS;
}

void WindowMemory::add_descriptors(std::set<int>* all) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, block] : blocks_)
    if (block.memory) all->insert(block.memory.get());
}

void WindowMemory::let_go() {
  const std::lock_guard lock(mutex_);
  for (auto& [begin, block] : blocks_) block.memory = os::Fd();
}

CUresult WindowMemory::make_again(const Instance& to) {
  const std::lock_guard lock(mutex_);
  for (auto& [begin, block] : blocks_) {
    if (block.memory || !block.has_it.empty()) continue;
    if (const CUresult made = create(to.driver(), begin, block.size_bytes); made != CUDA_SUCCESS) return made;
    block.has_it.push_back(to.slot());
  }
  return CUDA_SUCCESS;
}

std::uint64_t WindowMemory::size_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [begin, block] : blocks_) sum += block.size_bytes;
  return sum;
}

}  // namespace firebreak::virtual_driver
