// SPDX-License-Identifier: Apache-2.0
/// A program that knows nothing of Firebreak: random work whose outcome its seed alone says, again and again,
/// each time compared with the first. Says "working" once it has all outcomes, and at the end what it saw.
///
///   redo_checker UNTIL OPERATIONS: until that file is there; so many operations in each piece of work.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/virtual/redo_program.h"
#include "workloads/common/gpu.h"

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  if (argument_count != 3) return 64;
  const std::string until = arguments[1];
  const std::string operations = arguments[2];
  const auto gpu = workloads::Gpu::open_primary(
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n");
  if (!gpu) {
    std::fprintf(stderr, "redo_checker: %s\n", to_string(gpu.error()).c_str());
    return 1;
  }
  constexpr std::size_t seeds = 16;
  test::RedoProgram program(
      cuda::Backend::from(const_cast<cuda::Driver*>(&gpu->driver()), [](void* driver, const char* symbol) {
        return static_cast<const cuda::Driver*>(driver)->symbol(symbol);
      }));
  std::vector<unsigned long long> right;
  unsigned long long runs = 0;
  unsigned long long wrong = 0;
  CUresult result = CUDA_SUCCESS;
  while (result == CUDA_SUCCESS && (right.size() < seeds || !std::filesystem::exists(until))) {
    const std::size_t seed = runs % seeds;
    std::istringstream words(std::to_string(seed) + " " + operations);
    const auto [answer, value] = program.run("run", words);
    result = answer;
    if (result != CUDA_SUCCESS) break;
    if (right.size() < seeds) {
      right.push_back(value);
      if (right.size() == seeds) std::puts("working");
      std::fflush(stdout);
    } else if (value != right[seed]) {
      wrong += 1;
    }
    runs += 1;
  }
  std::printf("{\"runs\": %llu, \"wrong\": %llu, \"result\": %d}\n", runs, wrong, static_cast<int>(result));
  std::fflush(stdout);
  return result == CUDA_SUCCESS && wrong == 0 ? 0 : 1;
}
