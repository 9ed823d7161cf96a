// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual/mapping_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <vector>

#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_graphs.h"

namespace firebreak::test {
namespace {

constexpr std::size_t block_bytes = std::size_t{2} << 20;
constexpr CUmemLocation gpu{CU_MEM_LOCATION_TYPE_DEVICE, 0};

/// Adds 3 to the first 16 words.
constexpr const char* adding = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry add(.param .u64 words)
{
  .reg .u64 %p;
  .reg .u32 %i, %x;
  .reg .pred %more;
  ld.param.u64 %p, [words];
  mov.u32 %i, 0;
again:
  ld.global.u32 %x, [%p];
  add.u32 %x, %x, 3;
  st.global.u32 [%p], %x;
  add.u64 %p, %p, 4;
  add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, 16;
  @%more bra again;
  ret;
}
)";

template <class Value = std::size_t>
Value next(std::istream& words) {
  Value value{};
  words >> value;
  return value;
}

/// By what a program may want of memory.
CUmemAllocationProp properties_of(const std::string& kind) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = gpu;
  if (kind == "exportable") wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (kind == "fabric") wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  if (kind == "rdma") wanted.allocFlags.gpuDirectRDMACapable = 1;
  if (kind == "compressible") wanted.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  if (kind == "special") wanted.allocFlags.usage = 2;
  if (kind == "host") wanted.location.type = CU_MEM_LOCATION_TYPE_HOST;
  if (kind == "elsewhere") wanted.location.id = 1;
  return wanted;
}

}  // namespace

MappingProgram::Seen MappingProgram::run(const std::string& verb, std::istream& words) {
  using Self = MappingProgram;
  static const std::map<std::string, Command> commands{
      {"reserve", &Self::reserve},
      {"free", &Self::free},
      {"free_part", &Self::free_part},
      {"create", &Self::create},
      {"release", &Self::release},
      {"create_nothing", &Self::create_nothing},
      {"map", &Self::map},
      {"unmap", &Self::unmap},
      {"access", &Self::access},
      {"rights", &Self::rights},
      {"retain", &Self::retain},
      {"retain_of_allocation", &Self::retain_of_allocation},
      {"properties", &Self::properties},
      {"export", &Self::export_it},
      {"multicast", &Self::multicast},
      {"export_and_import", &Self::export_and_import},
      {"fill", &Self::fill},
      {"read", &Self::read},
      {"add", &Self::add},
      {"copy", &Self::copy},
      {"range", &Self::range},
      {"attributes", &Self::attributes},
      {"capture", &Self::capture},
      {"launch", &Self::launch},
      {"in_child", &Self::in_child},
      {"use_in_order", &Self::use_in_order},
      {"import", &Self::import_it},
  };
  const auto found = commands.find(verb);
  if (found == commands.end()) return {CUDA_ERROR_UNKNOWN, 0};
  return (this->*found->second)(words);
}

/// RESERVATION AT
CUdeviceptr MappingProgram::place(std::istream& words) {
  const CUdeviceptr begin = reservations_.at(next(words)).begin;
  return begin + next(words) * block_bytes;
}

/// RESERVATION BLOCKS [ALIGNMENT in blocks] [HINT]: whether it is aligned.
MappingProgram::Seen MappingProgram::reserve(std::istream& words) {
  Reservation& made = reservations_.at(next(words));
  made.size_bytes = next(words) * block_bytes;
  const std::size_t alignment_bytes = next(words) * block_bytes;
  const CUresult result =
      driver_.cuMemAddressReserve(&made.begin, made.size_bytes, alignment_bytes, next(words), 0);
  return {result, alignment_bytes == 0 || made.begin % alignment_bytes == 0 ? 1 : 0};
}

/// RESERVATION
MappingProgram::Seen MappingProgram::free(std::istream& words) {
  const Reservation& freed = reservations_.at(next(words));
  return {driver_.cuMemAddressFree(freed.begin, freed.size_bytes), 0};
}

/// RESERVATION AT BLOCKS
MappingProgram::Seen MappingProgram::free_part(std::istream& words) {
  const CUdeviceptr begin = place(words);
  return {driver_.cuMemAddressFree(begin, next(words) * block_bytes), 0};
}

/// MEMORY BLOCKS [KIND]
MappingProgram::Seen MappingProgram::create(std::istream& words) {
  CUmemGenericAllocationHandle& made = memories_.at(next(words));
  const std::size_t size_bytes = next(words) * block_bytes;
  const CUmemAllocationProp wanted = properties_of(next<std::string>(words));
  return {driver_.cuMemCreate(&made, size_bytes, &wanted, 0), 0};
}

/// As programs should not: how often it is refused.
MappingProgram::Seen MappingProgram::create_nothing(std::istream&) {
  CUmemGenericAllocationHandle made = 0;
  CUmemAllocationProp wanted = properties_of("");
  unsigned long long refused = 0;
  const auto count = [&](CUresult result) { refused += result == CUDA_ERROR_INVALID_VALUE ? 1 : 0; };
  count(driver_.cuMemCreate(&made, 0, &wanted, 0));
  count(driver_.cuMemCreate(&made, 4096, &wanted, 0));
  count(driver_.cuMemCreate(&made, block_bytes, &wanted, 1));
  count(driver_.cuMemCreate(&made, block_bytes, nullptr, 0));
  count(driver_.cuMemCreate(nullptr, block_bytes, &wanted, 0));
  wanted.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  count(driver_.cuMemCreate(&made, block_bytes, &wanted, 0));
  CUdeviceptr address = 0;
  count(driver_.cuMemAddressReserve(&address, 0, 0, 0, 0));
  count(driver_.cuMemAddressReserve(&address, 4096, 0, 0, 0));
  count(driver_.cuMemAddressReserve(&address, block_bytes, 3, 0, 0));
  count(driver_.cuMemAddressReserve(&address, block_bytes, 0, 0, 1));
  count(driver_.cuMemAddressReserve(nullptr, block_bytes, 0, 0, 0));
  count(driver_.cuMemRelease(0));
  return {CUDA_SUCCESS, refused};
}

/// MEMORY
MappingProgram::Seen MappingProgram::release(std::istream& words) {
  return {driver_.cuMemRelease(memories_.at(next(words))), 0};
}

/// RESERVATION AT BLOCKS MEMORY [OFFSET in blocks]
MappingProgram::Seen MappingProgram::map(std::istream& words) {
  const CUdeviceptr begin = place(words);
  const std::size_t size_bytes = next(words) * block_bytes;
  const auto memory = memories_.at(next(words));
  return {driver_.cuMemMap(begin, size_bytes, next(words) * block_bytes, memory, 0), 0};
}

/// RESERVATION AT BLOCKS
MappingProgram::Seen MappingProgram::unmap(std::istream& words) {
  const CUdeviceptr begin = place(words);
  return {driver_.cuMemUnmap(begin, next(words) * block_bytes), 0};
}

/// RESERVATION AT BLOCKS FLAGS [DEVICE]
MappingProgram::Seen MappingProgram::access(std::istream& words) {
  const CUdeviceptr begin = place(words);
  const std::size_t size_bytes = next(words) * block_bytes;
  CUmemAccessDesc rights{gpu, static_cast<CUmemAccess_flags>(next<int>(words))};
  rights.location.id = next<int>(words);
  return {driver_.cuMemSetAccess(begin, size_bytes, &rights, 1), 0};
}

/// RESERVATION AT
MappingProgram::Seen MappingProgram::rights(std::istream& words) {
  unsigned long long flags = 0;
  const CUresult result = driver_.cuMemGetAccess(&flags, &gpu, place(words) + 5);
  return {result, flags};
}

/// MEMORY RESERVATION AT OTHER: whether it is OTHER's handle.
MappingProgram::Seen MappingProgram::retain(std::istream& words) {
  CUmemGenericAllocationHandle& retained = memories_.at(next(words));
  const CUdeviceptr address = place(words) + 77;
  const CUresult result = driver_.cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(address));
  return {result, result == CUDA_SUCCESS && retained == memories_.at(next(words)) ? 1 : 0};
}

/// Memory that cuMemAlloc made has none, and no range of the program's.
MappingProgram::Seen MappingProgram::retain_of_allocation(std::istream&) {
  CUdeviceptr address = 0;
  const CUresult made = driver_.cuMemAlloc_v2(&address, block_bytes);
  if (made != CUDA_SUCCESS) return {made, 0};
  CUmemGenericAllocationHandle retained = 0;
  const CUmemAccessDesc rights{gpu, CU_MEM_ACCESS_FLAGS_PROT_READ};
  unsigned long long refused = 0;
  const auto count = [&](CUresult result) { refused += result == CUDA_ERROR_INVALID_VALUE ? 1 : 0; };
  count(driver_.cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(address)));
  count(driver_.cuMemSetAccess(address, block_bytes, &rights, 1));
  count(driver_.cuMemUnmap(address, block_bytes));
  count(driver_.cuMemAddressFree(address, block_bytes));
  count(driver_.cuMemMap(address + 64 * block_bytes, block_bytes, 0, memories_[0], 0));
  const CUresult filled = driver_.cuMemsetD32_v2(address, 1, block_bytes / 4);
  if (filled != CUDA_SUCCESS) return {filled, refused};
  return {driver_.cuMemFree_v2(address), refused};
}

/// MEMORY
MappingProgram::Seen MappingProgram::properties(std::istream& words) {
  CUmemAllocationProp has{};
  const CUresult result = driver_.cuMemGetAllocationPropertiesFromHandle(&has, memories_.at(next(words)));
  return {result, static_cast<unsigned>(has.type) * 1000U + has.requestedHandleTypes * 100U +
                      has.allocFlags.gpuDirectRDMACapable * 10U + static_cast<unsigned>(has.location.type)};
}

/// MEMORY: whether there was a descriptor.
MappingProgram::Seen MappingProgram::export_it(std::istream& words) {
  int descriptor = -1;
  const CUresult result = driver_.cuMemExportToShareableHandle(&descriptor, memories_.at(next(words)),
                                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  const bool is_open = descriptor >= 0 && ::close(descriptor) == 0;
  return {result, is_open ? 1 : 0};
}

/// MEMORY OTHER: from now on the program has it under that number, too.
MappingProgram::Seen MappingProgram::export_and_import(std::istream& words) {
  int descriptor = -1;
  const auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUresult result = driver_.cuMemExportToShareableHandle(&descriptor, memories_.at(next(words)), type, 0);
  if (result != CUDA_SUCCESS) return {result, 0};
  void* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
  result = driver_.cuMemImportFromShareableHandle(&memories_.at(next(words)), number, type);
  ::close(descriptor);
  return {result, 0};
}

/// MEMORY: what the software GPU takes for memory that another process has exported.
MappingProgram::Seen MappingProgram::import_it(std::istream& words) {
  const int others = ::memfd_create("memory of others", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (::ftruncate(others, block_bytes) != 0 ||
      ::fcntl(others, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return {CUDA_ERROR_OPERATING_SYSTEM, 0};
  void* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(others));
  const CUresult result = driver_.cuMemImportFromShareableHandle(&memories_.at(next(words)), number,
                                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  ::close(others);
  return {result, 0};
}

MappingProgram::Seen MappingProgram::multicast(std::istream&) {
  CUmemGenericAllocationHandle made = 0;
  return {driver_.cuMulticastCreate(&made, nullptr), 0};
}

/// RESERVATION AT BLOCKS VALUE
MappingProgram::Seen MappingProgram::fill(std::istream& words) {
  const CUdeviceptr begin = place(words);
  const std::size_t count = next(words) * block_bytes / 4;
  const CUresult result = driver_.cuMemsetD32_v2(begin, next<unsigned>(words), count);
  return {result == CUDA_SUCCESS ? driver_.cuCtxSynchronize() : result, 0};
}

/// RESERVATION AT: of the first and the last words of a block.
MappingProgram::Seen MappingProgram::read(std::istream& words) {
  const CUdeviceptr begin = place(words);
  std::array<std::uint32_t, 40> seen{};
  CUresult result = driver_.cuMemcpyDtoH_v2(seen.data(), begin, sizeof seen / 2);
  if (result == CUDA_SUCCESS)
    result = driver_.cuMemcpyDtoH_v2(&seen[20], begin + block_bytes - sizeof seen / 2, sizeof seen / 2);
  unsigned long long sum = 0;
  for (const std::uint32_t word : seen) sum = sum * 31 + word;
  return {result, sum};
}

/// RESERVATION AT: by a kernel.
MappingProgram::Seen MappingProgram::add(std::istream& words) {
  CUdeviceptr begin = place(words);
  if (module_ == nullptr) {
    if (const CUresult loaded = driver_.cuModuleLoadData(&module_, adding); loaded != CUDA_SUCCESS)
      return {loaded, 0};
  }
  CUfunction function = nullptr;
  CUresult result = driver_.cuModuleGetFunction(&function, module_, "add");
  std::array<void*, 1> parameters{&begin};
  if (result == CUDA_SUCCESS)
    result = driver_.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr);
  return {result == CUDA_SUCCESS ? driver_.cuCtxSynchronize() : result, 0};
}

/// RESERVATION AT RESERVATION AT BLOCKS: to the first one.
MappingProgram::Seen MappingProgram::copy(std::istream& words) {
  const CUdeviceptr to = place(words);
  const CUdeviceptr from = place(words);
  const CUresult result = driver_.cuMemcpyDtoD_v2(to, from, next(words) * block_bytes);
  return {result == CUDA_SUCCESS ? driver_.cuCtxSynchronize() : result, 0};
}

/// RESERVATION AT: what cuMemGetAddressRange says, counted from AT on.
MappingProgram::Seen MappingProgram::range(std::istream& words) {
  const CUdeviceptr address = place(words) + 100;
  CUdeviceptr begin = address;
  std::size_t size_bytes = 0;
  const CUresult result = driver_.cuMemGetAddressRange_v2(&begin, &size_bytes, address);
  return {result, (address - begin) * 1000 + size_bytes / block_bytes};
}

/// RESERVATION AT: asked one by one and all at once, counted from AT on.
MappingProgram::Seen MappingProgram::attributes(std::istream& words) {
  constexpr std::array asked{CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                             CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                             CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
                             CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                             CU_POINTER_ATTRIBUTE_CONTEXT,
                             CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
  const CUdeviceptr address = place(words) + 100;
  unsigned long long sum = 0;
  const auto note = [&](CUpointer_attribute attribute, std::uint64_t answer) {
    const bool is_address = attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                            attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
    sum = sum * 31 + (is_address && answer != 0 ? address - answer : answer);
  };
  for (CUpointer_attribute attribute : asked) {
    std::uint64_t answer = 0;
    sum = sum * 31 + static_cast<unsigned>(driver_.cuPointerGetAttribute(&answer, attribute, address));
    note(attribute, answer);
  }
  auto all = asked;
  std::array<std::uint64_t, asked.size()> answers{};
  std::array<void*, asked.size()> into{};
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = &answers[i];
  const CUresult result = driver_.cuPointerGetAttributes(asked.size(), all.data(), into.data(), address);
  for (std::size_t i = 0; i < into.size(); ++i) note(asked[i], answers[i]);
  return {result, sum};
}

/// RESERVATION AT VALUE: a fill, to be launched later.
MappingProgram::Seen MappingProgram::capture(std::istream& words) {
  const CUdeviceptr begin = place(words);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUresult result = driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  const auto then = [&](const auto& act) { result = result == CUDA_SUCCESS ? act() : result; };
  then([&] { return driver_.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL); });
  then([&] { return driver_.cuMemsetD32Async(begin, next<unsigned>(words), block_bytes / 4, stream); });
  then([&] { return driver_.cuStreamEndCapture(stream, &graph); });
  then([&] { return driver_.cuGraphInstantiateWithFlags(&graph_, graph, 0); });
  then([&] { return driver_.cuGraphDestroy(graph); });
  then([&] { return driver_.cuStreamDestroy_v2(stream); });
  return {result, 0};
}

MappingProgram::Seen MappingProgram::launch(std::istream&) {
  const CUresult result = driver_.cuGraphLaunch(graph_, nullptr);
  return {result == CUDA_SUCCESS ? driver_.cuCtxSynchronize() : result, 0};
}

/// BLOCKS: by cuMemAllocAsync and cuMemFreeAsync, with nobody who waits.
MappingProgram::Seen MappingProgram::use_in_order(std::istream& words) {
  const std::size_t size_bytes = next(words) * block_bytes;
  CUdeviceptr address = 0;
  CUresult result = driver_.cuMemAllocAsync(&address, size_bytes, nullptr);
  if (result == CUDA_SUCCESS) result = driver_.cuMemsetD32Async(address, 1, size_bytes / 4, nullptr);
  return {result == CUDA_SUCCESS ? driver_.cuMemFreeAsync(address, nullptr) : result, 0};
}

/// What each of these calls answers in a child of fork().
MappingProgram::Seen MappingProgram::in_child(std::istream&) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {CUDA_ERROR_OPERATING_SYSTEM, 0};
  const pid_t child = ::fork();
  if (child == 0) {
    CUdeviceptr address = 0;
    CUmemGenericAllocationHandle memory = 0;
    const CUmemAllocationProp wanted = properties_of("");
    const std::array answers{driver_.cuMemAddressReserve(&address, block_bytes, 0, 0, 0),
                             driver_.cuMemCreate(&memory, block_bytes, &wanted, 0),
                             driver_.cuMemMap(reservations_[0].begin, block_bytes, 0, memories_[0], 0),
                             driver_.cuMemUnmap(reservations_[0].begin, block_bytes),
                             driver_.cuMemRelease(memories_[0])};
    const bool is_told = ::write(ends[1], answers.data(), sizeof answers) == sizeof answers;
    ::_exit(is_told ? 0 : 1);
  }
  std::array<CUresult, 5> answers{};
  const bool is_told = ::read(ends[0], answers.data(), sizeof answers) == sizeof answers;
  ::close(ends[0]);
  ::close(ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  unsigned long long sum = 0;
  for (const CUresult answer : answers) sum = sum * 1000 + static_cast<unsigned>(answer);
  return {is_told && status == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, sum};
}

}  // namespace firebreak::test
