// SPDX-License-Identifier: Apache-2.0
/// Work that may be done again, and work that may not: given to the GPU without waiting for it.
#pragma once

#include <array>
#include <cstdint>
#include <istream>
#include <random>
#include <string>
#include <utility>

#include "program/cuda/backend.h"

namespace firebreak::test {

/// One thread's, whose current context it needs. Its memory is there from the first call on.
class RedoProgram {
 public:
  explicit RedoProgram(const cuda::Backend& driver) : driver_(driver) {}

  /// give WHAT: one thing to the GPU, in one stream; see give(). give_many TIMES: a fill, so often. wait:
  /// until all has ended. digest: of all its memory, as copies to the host see it. run SEED OPERATIONS: so
  /// many at random in two streams, each in the order of the one before, with waits and what the host does in
  /// between; the answer is what it has seen, which depends on the seed alone.
  std::pair<CUresult, unsigned long long> run(const std::string& what, std::istream& words);

 private:
  static constexpr std::uint32_t word_count = 4096;
  static constexpr std::size_t buffer_bytes = word_count * sizeof(std::uint32_t);
  static constexpr std::size_t buffers = 4;
  using Host = std::uint32_t*;

  CUresult prepare();
  CUresult give(const std::string& what);
  CUresult launch(const char* kernel, std::size_t to, std::size_t from, std::uint32_t count,
                  std::uint32_t value);
  bool is_over(std::size_t host);
  CUresult wait();
  std::pair<CUresult, unsigned long long> digest();
  std::pair<CUresult, unsigned long long> run_random(std::uint64_t seed, unsigned int operations);
  CUresult do_random(std::mt19937_64& random);
  CUresult time(bool begins);
  CUresult load_other_code();
  CUresult copy_constants();
  CUresult map();
  CUresult map_anew();
  CUresult open_mapped();
  CUresult change_stream();
  CUresult capture(const std::string& what);
  CUresult make_graph(const char* kernel, CUgraph* graph);
  CUresult update(const char* kernel);
  CUresult end_graph();
  CUresult do_random_graph(std::mt19937_64& random);
  CUresult look(std::mt19937_64& random);
  CUresult first_of(CUresult before, CUresult result) { return before == CUDA_SUCCESS ? result : before; }
  void note(std::uint64_t value) { seen_ = (seen_ ^ value) * 0x9e3779b97f4a7c15 + 1; }

  const cuda::Backend driver_;
  CUmodule module_ = nullptr;
  std::array<CUstream, 2> streams_{};
  std::size_t stream_ = 0;
  CUevent event_ = nullptr;
  std::array<CUevent, 2> timed_{};
  CUgraphExec graph_ = nullptr;
  bool is_one_kernel_ = false;  ///< that graph, if it was made at random
  std::array<CUdeviceptr, buffers> memory_{};
  CUdeviceptr mapped_ = 0;
  std::array<CUmemGenericAllocationHandle, 2> mappable_{};
  std::array<Host, 2> hosts_{};  ///< pinned: what is copied to the GPU, and what comes from it
  std::array<std::uint32_t, 64> pageable_{};
  std::uint64_t seen_ = 0;
};

}  // namespace firebreak::test
