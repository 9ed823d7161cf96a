// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/mappings.h"

#include <algorithm>
#include <iterator>
#include <thread>

#include "ground/os/descriptors.h"
#include "program/cuda/driver.h"

namespace firebreak::virtual_driver {
namespace {

constexpr CUmemLocation gpu{CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr auto by_descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

template <class Value>
Value* of_slot(std::vector<std::pair<Slot, Value>>& all, Slot slot) {
  const auto found = std::ranges::find(all, slot, &std::pair<Slot, Value>::first);
  return found == all.end() ? nullptr : &found->second;
}

template <class Value>
std::optional<Value> take_slot(std::vector<std::pair<Slot, Value>>& all, Slot slot) {
  const Value* const found = of_slot(all, slot);
  if (found == nullptr) return std::nullopt;
  const Value taken = *found;
  std::erase_if(all, [slot](const auto& each) { return each.first == slot; });
  return taken;
}

CUmemAllocationProp with_descriptor(CUmemAllocationProp wanted) {
  const int types = wanted.requestedHandleTypes | by_descriptor;
  wanted.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(types);
  return wanted;
}

/// It is the kind that is refused, and not the moment.
bool is_refusal(CUresult result) {
  return result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY && !cuda::is_fatal(result);
}

/// What the driver answers where the program's reservations do not have the range.
constexpr CUresult no_such_range = CUDA_ERROR_INVALID_VALUE;
constexpr CUresult no_such_memory = CUDA_ERROR_INVALID_VALUE;

}  // namespace

const char* why_not_for_spare(const CUmemAllocationProp& wanted) {
  switch (wanted.location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return "it maps memory of the host into the GPU's addresses";
    default:
      return "it creates memory of a kind that is not followed";
  }
  if (wanted.location.id != gpu.id) return "it uses several devices";
  if (wanted.type != CU_MEM_ALLOCATION_TYPE_PINNED) return "it creates memory of a kind that is not followed";
  if (wanted.allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE)
    return "it creates compressible memory";
  if (wanted.allocFlags.usage != 0) return "it creates memory for a special use (allocFlags.usage)";
  return nullptr;
}

const char* why_not_for_spare(std::span<const CUmemAccessDesc> rights) {
  for (const CUmemAccessDesc& each : rights) {
    if (each.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return "it gives the host access to memory that it maps";
    if (each.location.id != gpu.id) return "it uses several devices";
  }
  return nullptr;
}

// ---- What the program has ----

std::unique_lock<std::mutex> Mappings::lock_for_caller() {
  callers_waiting_.fetch_add(1);
  std::unique_lock lock(mutex_);
  callers_waiting_.fetch_sub(1);
  return lock;
}

std::shared_ptr<Mappings::Memory> Mappings::find(MemoryHandle handle) const {
  const auto found = memories_.find(handle);
  return found == memories_.end() ? nullptr : found->second;
}

std::optional<MemoryHandle> Mappings::handle_in(Slot slot, MemoryHandle handle) {
  const auto lock = lock_for_caller();
  const auto memory = find(handle);
  const MemoryHandle* const own = memory == nullptr ? nullptr : of_slot(memory->in, slot);
  return own == nullptr ? std::nullopt : std::optional(*own);
}

std::map<CUdeviceptr, Mappings::Mapping>::iterator Mappings::mapping_at(CUdeviceptr address) {
  const auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return mappings_.end();
  const auto found = std::prev(after);
  return address - found->first < found->second.size_bytes ? found : mappings_.end();
}

std::optional<Mappings::Place> Mappings::find_place(CUdeviceptr address) {
  const auto lock = lock_for_caller();
  const auto found = mapping_at(address);
  const auto after = reservations_.upper_bound(address);
  if (found == mappings_.end() || after == reservations_.begin()) return std::nullopt;
  const auto& [begin, size_bytes] = *std::prev(after);
  return Place{begin, size_bytes, found->second.memory->properties.requestedHandleTypes};
}

/// By reservations of the program's, without a gap.
bool Mappings::is_reserved(CUdeviceptr address, std::size_t size_bytes) const {
  while (true) {
    const auto after = reservations_.upper_bound(address);
    if (after == reservations_.begin()) return false;
    const auto& [begin, reserved_bytes] = *std::prev(after);
    if (address - begin >= reserved_bytes) return false;
    const std::size_t there = reserved_bytes - (address - begin);
    if (size_bytes <= there) return true;
    address += there;
    size_bytes -= there;
  }
}

/// Each instance has reserved the window whole, and has more there than what the program knows of: for the
/// program nothing is reserved in between.
bool Mappings::is_refused(CUdeviceptr address, std::size_t size_bytes) const {
  const bool is_outside =
      !is_in_window(address) && (size_bytes == 0 || !is_in_window(address + size_bytes - 1));
  return !is_outside && !is_reserved(address, size_bytes);
}

// ---- Addresses ----

CUresult Mappings::reserve(const Instance& active, std::size_t size_bytes, std::size_t alignment_bytes,
                           CUdeviceptr hint, unsigned long long flags, CUdeviceptr* address) {
  // The driver says whether it may be; what it has found stays where the window has no room.
  CUdeviceptr found = 0;
  const cuda::Backend& driver = active.driver();
  const CUresult result = driver.cuMemAddressReserve(address == nullptr ? nullptr : &found, size_bytes,
                                                     alignment_bytes, hint, flags);
  if (result != CUDA_SUCCESS) return result;
  const auto lock = lock_for_caller();
  const auto in_window = memory_.reserve(size_bytes, alignment_bytes);
  if (in_window) driver.cuMemAddressFree(found, size_bytes);
  *address = in_window.value_or(found);
  reservations_[*address] = size_bytes;
  return CUDA_SUCCESS;
}

CUresult Mappings::free(const Instance& active, CUdeviceptr address, std::size_t size_bytes) {
  const auto lock = lock_for_caller();
  const auto found = reservations_.find(address);
  if (!is_in_window(address)) {
    const CUresult result = active.driver().cuMemAddressFree(address, size_bytes);
    if (result == CUDA_SUCCESS && found != reservations_.end()) reservations_.erase(found);
    return result;
  }
  if (found == reservations_.end() || found->second != size_bytes) return no_such_range;
  const auto mapping = mappings_.lower_bound(address);
  const bool is_used = mapping != mappings_.end() && mapping->first - address < size_bytes;
  if (is_used || mapping_at(address) != mappings_.end()) return no_such_range;
  reservations_.erase(found);
  memory_.give_back(address);
  return CUDA_SUCCESS;
}

// ---- Memory ----

MemoryHandle Mappings::add_memory(const std::shared_ptr<Memory>& memory, Slot slot, MemoryHandle own) {
  memory->in.emplace_back(slot, own);
  memory->seen = own;
  while (has_flipped_.load() && memories_.contains(memory->seen = next_seen_)) next_seen_ += 16;
  if (has_flipped_.load()) next_seen_ += 16;
  memories_[memory->seen] = memory;
  return memory->seen;
}

CUresult Mappings::create(const Instance& active, std::size_t size_bytes, const CUmemAllocationProp* wanted,
                          unsigned long long flags, bool* is_for_spare, MemoryHandle* handle) {
  const cuda::Backend& driver = active.driver();
  MemoryHandle own = 0;
  if (wanted == nullptr || handle == nullptr) return driver.cuMemCreate(handle, size_bytes, wanted, flags);
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (*is_for_spare) {
    const CUmemAllocationProp more = with_descriptor(*wanted);
    result = driver.cuMemCreate(&own, size_bytes, &more, flags);
  }
  if (is_refusal(result)) {
    *is_for_spare = false;
    result = driver.cuMemCreate(&own, size_bytes, wanted, flags);
  }
  if (result != CUDA_SUCCESS) return result;
  const auto memory = std::make_shared<Memory>();
  memory->is_for_spare = *is_for_spare;
  memory->size_bytes = *is_for_spare ? size_bytes : 0;
  if (driver.cuMemGetAllocationPropertiesFromHandle(&memory->properties, own) != CUDA_SUCCESS)
    memory->properties = *wanted;
  memory->properties.requestedHandleTypes = wanted->requestedHandleTypes;
  if (*is_for_spare) exports_.maybe(SystemClock(), [&] { (void)make_movable(*memory, own, active); });
  const auto lock = lock_for_caller();
  *handle = add_memory(memory, active.slot(), own);
  return CUDA_SUCCESS;
}

MemoryHandle Mappings::add(const Instance& active, MemoryHandle own) {
  const auto memory = std::make_shared<Memory>();
  memory->is_for_spare = false;
  active.driver().cuMemGetAllocationPropertiesFromHandle(&memory->properties, own);
  const auto lock = lock_for_caller();
  return add_memory(memory, active.slot(), own);
}

CUresult Mappings::release(const Instance& active, MemoryHandle handle) {
  const auto lock = lock_for_caller();
  const auto memory = find(handle);
  if (memory == nullptr || memory->references == 0) return no_such_memory;
  --memory->references;
  end_if_unused(active, memory);
  return CUDA_SUCCESS;
}

CUresult Mappings::retain(const Instance& active, CUdeviceptr address, MemoryHandle* handle) {
  const auto lock = lock_for_caller();
  const auto found = mapping_at(address);
  if (is_in_window(address) && found == mappings_.end()) return no_such_range;
  MemoryHandle own = 0;
  const cuda::Backend& driver = active.driver();
  const CUresult result = driver.cuMemRetainAllocationHandle(handle == nullptr ? nullptr : &own,
                                                             reinterpret_cast<void*>(address));
  if (result != CUDA_SUCCESS) return result;
  driver.cuMemRelease(own);  // one of ours is enough
  if (found == mappings_.end()) return no_such_range;
  ++found->second.memory->references;
  *handle = found->second.memory->seen;
  return CUDA_SUCCESS;
}

CUresult Mappings::properties(MemoryHandle handle, CUmemAllocationProp* answer) {
  const auto lock = lock_for_caller();
  const auto memory = find(handle);
  if (memory == nullptr || answer == nullptr) return no_such_memory;
  *answer = memory->properties;
  return CUDA_SUCCESS;
}

CUresult Mappings::export_to(const Instance& active, void* shareable_handle, MemoryHandle handle,
                             CUmemAllocationHandleType type, unsigned long long flags) {
  const auto lock = lock_for_caller();
  const auto memory = find(handle);
  if (memory == nullptr) return no_such_memory;
  // That it can be exported is ours, unless the program wanted it.
  if (type == by_descriptor && (memory->properties.requestedHandleTypes & by_descriptor) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const MemoryHandle* const own = of_slot(memory->in, active.slot());
  if (own == nullptr) return no_such_memory;
  const CUresult result = active.driver().cuMemExportToShareableHandle(shareable_handle, *own, type, flags);
  // What an instance has imported it refuses to export.
  if (!is_refusal(result) || !memory->descriptor || type != by_descriptor || shareable_handle == nullptr ||
      flags != 0)
    return result;
  auto copy = os::duplicate(memory->descriptor.get());
  if (!copy) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shareable_handle) = copy->release();
  return CUDA_SUCCESS;
}

// ---- Mappings ----

CUresult Mappings::map(const Instance& active, CUdeviceptr address, std::size_t size_bytes,
                       std::size_t offset_bytes, MemoryHandle handle, unsigned long long flags) {
  const auto lock = lock_for_caller();
  const auto memory = find(handle);
  const Slot slot = active.slot();
  const MemoryHandle* const own = memory == nullptr ? nullptr : of_slot(memory->in, slot);
  if (own == nullptr) return no_such_memory;
  if (is_refused(address, size_bytes)) return no_such_range;
  const CUresult result = active.driver().cuMemMap(address, size_bytes, offset_bytes, *own, flags);
  if (result != CUDA_SUCCESS) return result;
  ++memory->mappings;
  Mapping made{.size_bytes = size_bytes, .offset_bytes = offset_bytes, .memory = memory, .in = {}};
  made.in.emplace_back(slot, made.access);
  mappings_.insert_or_assign(address, std::move(made));
  return CUDA_SUCCESS;
}

CUresult Mappings::unmap(const Instance& active, CUdeviceptr address, std::size_t size_bytes) {
  const auto lock = lock_for_caller();
  if (is_refused(address, size_bytes)) return no_such_range;
  const CUresult result = active.driver().cuMemUnmap(address, size_bytes);
  if (result != CUDA_SUCCESS) return result;
  auto next = mappings_.lower_bound(address);
  while (next != mappings_.end() && next->first - address < size_bytes) {
    end_mapping(active, next->first, next->second);
    next = mappings_.erase(next);
  }
  return CUDA_SUCCESS;
}

CUresult Mappings::set_access(const Instance& active, CUdeviceptr address, std::size_t size_bytes,
                              const CUmemAccessDesc* rights, std::size_t count) {
  const auto lock = lock_for_caller();
  if (is_refused(address, size_bytes)) return no_such_range;
  const CUresult result = active.driver().cuMemSetAccess(address, size_bytes, rights, count);
  // What it has set before it failed, it has set.
  for (auto next = mappings_.lower_bound(address);
       next != mappings_.end() && next->first - address < size_bytes; ++next) {
    Mapping& mapping = next->second;
    unsigned long long* const here = of_slot(mapping.in, active.slot());
    unsigned long long now = 0;
    if (here == nullptr || active.driver().cuMemGetAccess(&now, &gpu, next->first) != CUDA_SUCCESS) continue;
    mapping.access = *here = now;
  }
  return result;
}

CUresult Mappings::access(const Instance& active, CUdeviceptr address, const CUmemLocation* location,
                          unsigned long long* flags) {
  const auto lock = lock_for_caller();
  if (is_refused(address, 1)) return no_such_range;
  return active.driver().cuMemGetAccess(flags, location, address);
}

// ---- The end of both ----

/// The instance of that slot, where it is one of the two that the program has; null: it was left.
const Instance* Mappings::user(Slot slot, const Instance& active) const {
  if (slot == active.slot()) return &active;
  const Instance* const receiver = receiver_.load();
  return receiver != nullptr && receiver->slot() == slot ? receiver : nullptr;
}

/// It is gone in the active instance already.
void Mappings::end_mapping(const Instance& active, CUdeviceptr address, Mapping& mapping) {
  for (const auto& [slot, access] : mapping.in) {
    const Instance* const instance = user(slot, active);
    if (instance == nullptr) {
      remains_.push_back({slot, address, mapping.size_bytes});
    } else if (instance != &active) {
      instance->driver().cuMemUnmap(address, mapping.size_bytes);
    }
  }
  --mapping.memory->mappings;
  end_if_unused(active, mapping.memory);
}

void Mappings::end_if_unused(const Instance& active, const std::shared_ptr<Memory>& memory) {
  if (memory->references != 0 || memory->mappings != 0) return;
  for (const auto& [slot, own] : memory->in) {
    const Instance* const instance = user(slot, active);
    if (instance == nullptr) {
      remains_.push_back({.slot = slot, .own = own});
    } else {
      instance->driver().cuMemRelease(own);
    }
  }
  memories_.erase(memory->seen);
}

std::vector<WindowMemory::Range> Mappings::all_own() {
  const auto lock = lock_for_caller();
  struct Run {
    WindowMemory::Range range;
    bool is_own = true;
  };
  std::vector<Run> runs;
  for (const auto& [begin, mapping] : mappings_) {
    const bool touches = !runs.empty() && runs.back().range.begin + runs.back().range.size_bytes == begin;
    if (!touches) runs.push_back({{begin, 0, 0}});
    runs.back().range.size_bytes += mapping.size_bytes;
    runs.back().is_own = runs.back().is_own && mapping.memory->mappings == 1 &&
                         mapping.memory->properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE &&
                         mapping.access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  std::vector<WindowMemory::Range> found;
  for (const Run& run : runs)
    if (run.is_own) found.push_back(run.range);
  return found;
}

// ---- From instance to instance ----

CUresult Mappings::make_movable(Memory& memory, MemoryHandle own, const Instance& active) {
  int exported = -1;
  const CUresult result = active.driver().cuMemExportToShareableHandle(&exported, own, by_descriptor, 0);
  if (result == CUDA_SUCCESS) memory.descriptor = os::move_above_limit(os::Fd(exported));
  return result;
}

CUresult Mappings::bring(Memory& memory, const Instance& instance, const Instance& active) {
  const Slot slot = instance.slot();
  if (!memory.is_for_spare || of_slot(memory.in, slot) != nullptr) return CUDA_SUCCESS;
  if (!memory.descriptor) {
    const MemoryHandle* const own = of_slot(memory.in, active.slot());
    if (own == nullptr) return no_such_memory;
    if (const CUresult done = make_movable(memory, *own, active); done != CUDA_SUCCESS) return done;
  }
  MemoryHandle imported = 0;
  void* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(memory.descriptor.get()));
  const CUresult result = instance.driver().cuMemImportFromShareableHandle(&imported, number, by_descriptor);
  if (result == CUDA_SUCCESS) memory.in.emplace_back(slot, imported);
  return result;
}

CUresult Mappings::bring(CUdeviceptr address, Mapping& mapping, const Instance& instance,
                         const Instance& active) {
  if (!mapping.memory->is_for_spare) return CUDA_SUCCESS;
  if (const CUresult done = bring(*mapping.memory, instance, active); done != CUDA_SUCCESS) return done;
  const Slot slot = instance.slot();
  if (of_slot(mapping.in, slot) == nullptr) {
    const MemoryHandle own = *of_slot(mapping.memory->in, slot);
    const CUresult done =
        instance.driver().cuMemMap(address, mapping.size_bytes, mapping.offset_bytes, own, 0);
    if (done != CUDA_SUCCESS) return done;
    mapping.in.emplace_back(slot, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  }
  unsigned long long& there = *of_slot(mapping.in, slot);
  if (there == mapping.access) return CUDA_SUCCESS;
  const CUmemAccessDesc rights{gpu, static_cast<CUmemAccess_flags>(mapping.access)};
  const CUresult done = instance.driver().cuMemSetAccess(address, mapping.size_bytes, &rights, 1);
  if (done == CUDA_SUCCESS) there = mapping.access;
  return done;
}

/// One by one, with the program's calls in between.
template <class Map, class Bring>
CUresult Mappings::bring_each(Map& all, const Bring& bring_one) {
  typename Map::key_type from = 0;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      const auto next = all.lower_bound(from);
      if (next == all.end()) return CUDA_SUCCESS;
      if (const CUresult done = bring_one(*next); done != CUDA_SUCCESS) return done;
      from = next->first + 1;
    }
    while (callers_waiting_.load() != 0) std::this_thread::yield();
  }
}

CUresult Mappings::bring_to(const Instance& instance, const Instance& active) {
  const CUresult done =
      bring_each(memories_, [&](auto& each) { return bring(*each.second, instance, active); });
  if (done != CUDA_SUCCESS) return done;
  return bring_each(mappings_, [&](auto& each) { return bring(each.first, each.second, instance, active); });
}

void Mappings::take_from(const Instance& instance) {
  const std::lock_guard lock(mutex_);
  const cuda::Backend& driver = instance.driver();
  const Slot slot = instance.slot();
  for (auto& [address, mapping] : mappings_) {
    if (take_slot(mapping.in, slot)) driver.cuMemUnmap(address, mapping.size_bytes);
  }
  for (const Remains& each : remains_) {
    if (each.slot == slot && each.address != 0) driver.cuMemUnmap(each.address, each.size_bytes);
  }
  for (auto& [handle, memory] : memories_) {
    if (const auto own = take_slot(memory->in, slot)) driver.cuMemRelease(*own);
  }
  for (const Remains& each : remains_) {
    if (each.slot == slot && each.address == 0) driver.cuMemRelease(each.own);
  }
  std::erase_if(remains_, [slot](const Remains& each) { return each.slot == slot; });
}

void Mappings::forget(Slot slot) {
  const std::lock_guard lock(mutex_);
  for (auto& [address, mapping] : mappings_) take_slot(mapping.in, slot);
  for (auto& [handle, memory] : memories_) take_slot(memory->in, slot);
  std::erase_if(remains_, [slot](const Remains& each) { return each.slot == slot; });
}

// ---- While the program rests ----

CUresult Mappings::make_all_movable(const Instance& active) {
  const std::lock_guard lock(mutex_);
  for (auto& [handle, memory] : memories_) {
    const MemoryHandle* const own = of_slot(memory->in, active.slot());
    if (own == nullptr) return no_such_memory;
    if (memory->descriptor) continue;
    if (const CUresult done = make_movable(*memory, *own, active); done != CUDA_SUCCESS) return done;
  }
  return CUDA_SUCCESS;
}

void Mappings::add_descriptors(std::set<int>* all) {
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, memory] : memories_)
    if (memory->descriptor) all->insert(memory->descriptor.get());
}

void Mappings::let_go() {
  const std::lock_guard lock(mutex_);
  for (auto& [handle, memory] : memories_) memory->descriptor = os::Fd();
}

CUresult Mappings::make_again(const Instance& to) {
  const std::lock_guard lock(mutex_);
  for (auto& [handle, memory] : memories_) {
    if (memory->descriptor || !memory->in.empty()) continue;
    const CUmemAllocationProp wanted = with_descriptor(memory->properties);
    MemoryHandle own = 0;
    const CUresult made = to.driver().cuMemCreate(&own, memory->size_bytes, &wanted, 0);
    if (made != CUDA_SUCCESS) return made;
    memory->in.emplace_back(to.slot(), own);
  }
  return CUDA_SUCCESS;
}

CUresult Mappings::show(const Instance& instance, std::vector<WindowMemory::Range>* all) {
  const std::lock_guard lock(mutex_);
  const cuda::Backend& driver = instance.driver();
  for (auto& [handle, memory] : memories_) {
    const MemoryHandle* const own = of_slot(memory->in, instance.slot());
    if (own == nullptr) return no_such_memory;
    if (memory->shown_at == 0) memory->shown_at = memory_.reserve(memory->size_bytes, 0).value_or(0);
    if (memory->shown_at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult done = driver.cuMemMap(memory->shown_at, memory->size_bytes, 0, *own, 0);
    if (done != CUDA_SUCCESS) return done;
    const CUmemAccessDesc rights{gpu, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    done = driver.cuMemSetAccess(memory->shown_at, memory->size_bytes, &rights, 1);
    if (done != CUDA_SUCCESS) return done;
    all->push_back({memory->shown_at, memory->size_bytes, 0});
  }
  return CUDA_SUCCESS;
}

void Mappings::hide(const Instance& instance, bool is_over) {
  const std::lock_guard lock(mutex_);
  for (auto& [handle, memory] : memories_) {
    if (memory->shown_at == 0) continue;
    (void)instance.driver().cuMemUnmap(memory->shown_at, memory->size_bytes);
    if (is_over) memory_.give_back(std::exchange(memory->shown_at, 0));
  }
}

}  // namespace firebreak::virtual_driver
