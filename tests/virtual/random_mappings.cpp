// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual/random_mappings.h"

namespace firebreak::test {
namespace {

constexpr std::size_t granule_bytes = std::size_t{2} << 20;
constexpr std::size_t places_max = 8;
constexpr std::size_t mapped_max = 3;
constexpr std::uint32_t words_count = 96;
constexpr std::size_t last_words = granule_bytes - words_count * 4;
constexpr CUmemLocation this_gpu{CU_MEM_LOCATION_TYPE_DEVICE, 0};

}  // namespace

CUdeviceptr RandomMappings::address_of(std::size_t place) const { return reserved_ + place * granule_bytes; }

void RandomMappings::give_rights(std::size_t place, CUmemAccess_flags flags) {
  const CUmemAccessDesc rights{this_gpu, flags};
  good(driver_.cuMemSetAccess(address_of(place), granule_bytes, &rights, 1));
}

void RandomMappings::create() {
  if (mapped_.size() == mapped_max) return end_one();
  if (reserved_ == 0 && !good(driver_.cuMemAddressReserve(&reserved_, places_max * granule_bytes,
                                                          granule_bytes << below(3), 0, 0)))
    return;
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = this_gpu;
  wanted.allocFlags.gpuDirectRDMACapable = static_cast<unsigned char>(below(2));
  if (below(2) == 0) wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  Mapped made{0, {}, 1};
  if (!good(driver_.cuMemCreate(&made.handle, granule_bytes, &wanted, 0))) return;
  mapped_.push_back(made);
  map(mapped_.back());
  if (mapped_.back().places.empty()) return;
  const CUdeviceptr begin = address_of(mapped_.back().places.front());
  wait_for_all();
  for (const std::size_t offset : {std::size_t{0}, last_words})
    good(driver_.cuMemsetD32_v2(begin + offset, below(1000), words_count));
  wait_for_all();
}

/// Where it is may be taken: the driver says so.
void RandomMappings::map(Mapped& mapped) {
  const std::size_t place = below(places_max);
  if (!good(driver_.cuMemMap(address_of(place), granule_bytes, 0, mapped.handle, 0))) return;
  mapped.places.push_back(place);
  if (below(4) != 0) give_rights(place, CU_MEM_ACCESS_FLAGS_PROT_READ);
  give_rights(place, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  if (below(2) == 0) release(mapped);
}

void RandomMappings::release(Mapped& mapped) {
  // What has no handle and no mapping any more is gone.
  if (mapped.references == 0 || (mapped.references == 1 && mapped.places.empty())) return;
  if (good(driver_.cuMemRelease(mapped.handle))) --mapped.references;
}

void RandomMappings::retain(Mapped& mapped) {
  if (mapped.places.empty()) return;
  CUmemGenericAllocationHandle retained = 0;
  void* const address = reinterpret_cast<void*>(address_of(one_of(mapped.places)) + below(granule_bytes));
  if (!good(driver_.cuMemRetainAllocationHandle(&retained, address))) return;
  note(retained == mapped.handle ? 1 : 0);
  ++mapped.references;
}

void RandomMappings::unmap(Mapped& mapped, std::size_t index) {
  wait_for_all();
  if (mapped.references == 0 && mapped.places.size() == 1) retain(mapped);
  good(driver_.cuMemUnmap(address_of(mapped.places[index]), granule_bytes));
  mapped.places.erase(mapped.places.begin() + static_cast<std::ptrdiff_t>(index));
}

void RandomMappings::change() {
  if (mapped_.empty()) return create();
  Mapped& mapped = one_of(mapped_);
  switch (below(4)) {
    case 0:
      return map(mapped);
    case 1:
      return retain(mapped);
    case 2:
      return release(mapped);
    default:
      if (!mapped.places.empty()) unmap(mapped, below(mapped.places.size()));
  }
}

void RandomMappings::use(CUfunction mix, CUstream stream) {
  if (mapped_.empty()) return create();
  Mapped& mapped = one_of(mapped_);
  if (mapped.places.empty()) return;
  wait_for_all();
  CUdeviceptr begin = address_of(one_of(mapped.places)) + (below(2) == 0 ? 0 : last_words);
  std::uint32_t count = words_count;
  std::uint32_t value = below(1U << 16);
  std::array<void*, 3> parameters{&begin, &count, &value};
  good(driver_.cuLaunchKernel(mix, 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr));
  wait_for_all();
  std::array<std::uint32_t, words_count> words{};
  for (const std::size_t place : mapped.places) {
    for (const std::size_t offset : {std::size_t{0}, last_words}) {
      good(driver_.cuMemcpyDtoH_v2(words.data(), address_of(place) + offset, sizeof words));
      for (const std::uint32_t word : words) note(word);
    }
  }
}

void RandomMappings::describe() {
  if (mapped_.empty()) return create();
  const CUdeviceptr address = address_of(below(places_max)) + below(granule_bytes);
  unsigned long long flags = 0;
  good(driver_.cuMemGetAccess(&flags, &this_gpu, address));
  note(flags);
  CUdeviceptr begin = address;
  std::size_t size_bytes = 0;
  good(driver_.cuMemGetAddressRange_v2(&begin, &size_bytes, address));
  note(address - begin);
  note(size_bytes);
  begin = reserved_;
  good(driver_.cuPointerGetAttribute(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address));
  note(begin == 0 ? 1 : address - begin);  // of what it does not know it says null
  size_bytes = 0;
  good(driver_.cuPointerGetAttribute(&size_bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address));
  note(size_bytes);
  CUmemAllocationProp has{};
  good(driver_.cuMemGetAllocationPropertiesFromHandle(&has, one_of(mapped_).handle));
  note(has.requestedHandleTypes * 2U + has.allocFlags.gpuDirectRDMACapable);
}

void RandomMappings::misuse() {
  if (mapped_.empty()) return create();
  const std::size_t place = below(places_max - 1);
  good(driver_.cuMemUnmap(address_of(place), 3 * granule_bytes / 2));
  good(driver_.cuMemAddressFree(reserved_, places_max * granule_bytes - granule_bytes));
  good(driver_.cuMemMap(address_of(place), 2 * granule_bytes, 0, one_of(mapped_).handle, 0));
  good(driver_.cuMemRelease(0));
}

void RandomMappings::end_one() {
  if (mapped_.empty()) return;
  const std::size_t drawn = below(mapped_.size());
  Mapped& mapped = mapped_[drawn];
  wait_for_all();
  for (const std::size_t place : mapped.places) good(driver_.cuMemUnmap(address_of(place), granule_bytes));
  while (mapped.references-- != 0) good(driver_.cuMemRelease(mapped.handle));
  mapped_.erase(mapped_.begin() + static_cast<std::ptrdiff_t>(drawn));
  if (mapped_.empty()) {
    good(driver_.cuMemAddressFree(reserved_, places_max * granule_bytes));
    reserved_ = 0;
  }
}

void RandomMappings::end_all() {
  while (!mapped_.empty()) end_one();
}

}  // namespace firebreak::test
