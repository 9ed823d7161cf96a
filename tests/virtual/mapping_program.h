// SPDX-License-Identifier: Apache-2.0
/// What a program does that manages its virtual memory by itself: one call a command, in blocks of 2 MiB.
#pragma once

#include <array>
#include <cstdint>
#include <istream>
#include <string>
#include <utility>

#include "program/cuda/backend.h"

namespace firebreak::test {

class MappingProgram {
 public:
  using Seen = std::pair<CUresult, unsigned long long>;

  explicit MappingProgram(cuda::Backend driver) : driver_(driver) {}

  /// RESERVATION, MEMORY and AT are numbers: of what the program has, and of a block in a reservation.
  Seen run(const std::string& verb, std::istream& words);

 private:
  using Command = Seen (MappingProgram::*)(std::istream&);
  struct Reservation {
    CUdeviceptr begin = 0;
    std::size_t size_bytes = 0;
  };

  CUdeviceptr place(std::istream& words);

  Seen reserve(std::istream& words);
  Seen free(std::istream& words);
  Seen free_part(std::istream& words);
  Seen create(std::istream& words);
  Seen create_nothing(std::istream& words);
  Seen release(std::istream& words);
  Seen map(std::istream& words);
  Seen unmap(std::istream& words);
  Seen access(std::istream& words);
  Seen rights(std::istream& words);
  Seen retain(std::istream& words);
  Seen retain_of_allocation(std::istream& words);
  Seen properties(std::istream& words);
  Seen export_it(std::istream& words);
  Seen export_and_import(std::istream& words);
  Seen import_it(std::istream& words);
  Seen multicast(std::istream& words);
  Seen fill(std::istream& words);
  Seen read(std::istream& words);
  Seen add(std::istream& words);
  Seen copy(std::istream& words);
  Seen range(std::istream& words);
  Seen attributes(std::istream& words);
  Seen capture(std::istream& words);
  Seen launch(std::istream& words);
  Seen use_in_order(std::istream& words);
  Seen in_child(std::istream& words);

  cuda::Backend driver_;
  std::array<Reservation, 8> reservations_{};
  std::array<CUmemGenericAllocationHandle, 64> memories_{};
  CUmodule module_ = nullptr;
  CUgraphExec graph_ = nullptr;
};

}  // namespace firebreak::test
