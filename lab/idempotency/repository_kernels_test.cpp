// SPDX-License-Identifier: Apache-2.0
// All kernels in the PTX files of this repository, over random launches. Most of these go astray somewhere:
// what they do until then has to be predicted all the same.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "idempotency/check.h"
#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::idempotency {
namespace {

constexpr std::uint64_t buffer_bytes = 128U << 10;

const std::vector<std::string> files{
    "/lab/workloads/decode/decode.ptx",        "/lab/workloads/denoise/denoise.ptx",
    "/lab/workloads/scribble/scribble.ptx",    "/lab/softgpu/interpreter/testdata/kernels.ptx",
    "/src/kernels/ptx/testdata/attention.ptx", "/src/kernels/ptx/testdata/reduce.ptx",
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
void put(std::vector<std::byte>& block, std::size_t at, T value) {
  std::memcpy(block.data() + at, &value, sizeof(value));
}

// Words of 8 bytes are pointers, words of 4 small numbers; structures are some of each.
LaunchCase random_launch(const ptx::Function& kernel, const std::vector<std::uint64_t>& buffers,
                         std::mt19937_64& random) {
  LaunchCase launch;
  launch.kernel = kernel.name;
  launch.grid = {static_cast<std::uint32_t>(1 + random() % 3), static_cast<std::uint32_t>(1 + random() % 2),
                 1};
  launch.block = {static_cast<std::uint32_t>(1 + random() % 64), 1, 1};
  launch.parameters.resize(kernel.parameter_bytes);
  for (const ptx::Parameter& parameter : kernel.parameters) {
    const bool has_pointers = parameter.size_bytes % 8 == 0;
    const std::size_t word = has_pointers ? 8 : 4;
    for (std::size_t at = 0; at + word <= parameter.size_bytes; at += word) {
      const std::size_t place = parameter.offset_bytes + at;
      const auto small = static_cast<std::uint32_t>(random() % 64);
      const bool is_pointer = has_pointers && (parameter.size_bytes == 8 || random() % 2 == 0);
      if (!is_pointer)
        put(launch.parameters, place, small);
      else
        put(launch.parameters, place,
            buffers[random() % buffers.size()] + buffer_bytes / 2 + 16 * (random() % 64));
    }
  }
  return launch;
}

TEST(RepositoryKernels, GoOnlyWhereTheyArePredictedTo) {
  std::mt19937_64 random(test_seed());
  int launches = 0;
  int completed = 0;
  int idempotent = 0;
  std::uint64_t accesses = 0;
  for (const std::string& name : files) {
    auto module = ptx::parse(read_file(FIREBREAK_ROOT + name));
    ASSERT_TRUE(module) << name << ": " << module.error().message;
    const ptx::Module copy = *module;
    TracedGpu gpu;
    std::vector<std::uint64_t> buffers;
    for (int i = 0; i < 3; ++i) buffers.push_back(gpu.allocate(buffer_bytes));
    const Status loaded = gpu.load(*std::move(module));
    ASSERT_TRUE(loaded) << name << ": " << to_string(loaded.error());
    for (const ptx::Function& kernel : copy.functions) {
      if (!kernel.is_entry || !kernel.has_body) continue;
      const access::KernelSummary summary = access::summarise(copy, kernel);
      access::DecisionWorkspace workspace;
      for (int i = 0; i < 6; ++i) {
        gpu.scramble(random());
        const auto report =
            check_launch(gpu, summary, random_launch(kernel, buffers, random), workspace, random);
        ASSERT_TRUE(report) << kernel.name << ": " << to_string(report.error());
        EXPECT_EQ(report->problem, "") << name << "\n" << access::explain(summary);
        ++launches;
        completed += report->end == RunEnd::Completed ? 1 : 0;
        idempotent += report->decision.verdict == access::Verdict::Idempotent ? 1 : 0;
        accesses += report->access_count;
      }
    }
  }
  std::printf("%d launches, %d to their end, %d idempotent, %llu accesses\n", launches, completed, idempotent,
              static_cast<unsigned long long>(accesses));
  EXPECT_GT(accesses, 10'000U);
  EXPECT_GT(idempotent, 0);
}

}  // namespace
}  // namespace firebreak::idempotency
