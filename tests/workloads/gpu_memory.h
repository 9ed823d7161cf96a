// SPDX-License-Identifier: Apache-2.0
/// The software GPU and its memory as the tests of the workloads need them.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "workloads/common/gpu.h"
#include "workloads/common/memory.h"
#include "workloads/common/workload.h"

namespace firebreak::workloads::testing {

/// From here on this process sees a software GPU of its own: nothing of the machine's one is seen or touched.
void use_own_soft_gpu();

/// That software GPU, opened.
Gpu open_soft_gpu(std::string_view ptx);

struct Region {
  CUdeviceptr address = 0;
  std::uint64_t size_bytes = 0;
};

/// Remembers what it gave out, and gives the same out again to whoever stands for another process that maps
/// it.
class SharedMemory final : public Memory {
 public:
  explicit SharedMemory(const cuda::Driver& driver) : memory_(driver) {}
  Result<CUdeviceptr> allocate(const std::string& name, std::uint64_t size_bytes) override;
  const std::map<std::string, Region>& regions() const { return regions_; }
  const Region& region(const std::string& name) const { return regions_.at(name); }

 private:
  PrivateMemory memory_;
  std::map<std::string, Region> regions_;
};

template <class T>
std::vector<T> download(const Gpu& gpu, const Region& region);
template <class T>
void upload(const Gpu& gpu, const Region& region, const std::vector<T>& values);

/// Random bytes over all of a region, or from `begin_byte` on.
void scribble(const Gpu& gpu, const Region& region, std::mt19937_64& random, std::uint64_t begin_byte = 0);

/// The output of a workload that moves to another context with the kernels of `ptx`, warmed up, half way
/// through its steps, the work of the first half still queued; `from` is current afterwards.
std::string output_of_one_that_moves(Workload& workload, const Gpu& from, std::string_view ptx);

}  // namespace firebreak::workloads::testing
