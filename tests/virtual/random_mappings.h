// SPDX-License-Identifier: Apache-2.0
/// The part of a random program that manages virtual memory by itself.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "program/cuda/backend.h"

namespace firebreak::test {

/// Blocks of 2 MiB in one small reservation, each mapped at some of its places.
class RandomMappings {
 public:
  /// `note`: something that is seen. `below`: draws a number below a bound.
  RandomMappings(const cuda::Backend& driver, std::function<void(std::uint64_t)> note,
                 std::function<std::uint32_t(std::size_t)> below)
      : driver_(driver), note_(std::move(note)), below_(std::move(below)) {}

  void create();
  void change();
  /// Each of one's places alike, by work of that stream. `mix` is random_program.cpp's.
  void use(CUfunction mix, CUstream stream);
  /// What the driver says of any place, mapped or not.
  void describe();
  /// What the driver is to refuse.
  void misuse();
  void end_all();

 private:
  /// What is mapped nowhere keeps a reference.
  struct Mapped {
    CUmemGenericAllocationHandle handle;
    std::vector<std::size_t> places;
    std::uint32_t references;
  };

  void note(std::uint64_t value) { note_(value); }
  bool good(CUresult result) {
    note(static_cast<std::uint64_t>(result));
    return result == CUDA_SUCCESS;
  }
  std::uint32_t below(std::size_t bound) { return below_(bound); }
  template <class Kind>
  Kind& one_of(std::vector<Kind>& all) {
    return all[below(all.size())];
  }
  void wait_for_all() { good(driver_.cuCtxSynchronize()); }

  CUdeviceptr address_of(std::size_t place) const;
  void give_rights(std::size_t place, CUmemAccess_flags flags);
  void map(Mapped& mapped);
  void release(Mapped& mapped);
  void retain(Mapped& mapped);
  void unmap(Mapped& mapped, std::size_t index);
  void end_one();

  const cuda::Backend& driver_;
  std::function<void(std::uint64_t)> note_;
  std::function<std::uint32_t(std::size_t)> below_;
  CUdeviceptr reserved_ = 0;  ///< 0: there is no reservation
  std::vector<Mapped> mapped_;
};

}  // namespace firebreak::test
