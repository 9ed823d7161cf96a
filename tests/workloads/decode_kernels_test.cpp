// SPDX-License-Identifier: Apache-2.0
// The decoder's kernels against a plain CPU implementation in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "tests/workloads/decode_reference.h"
#include "tests/workloads/gpu_memory.h"
#include "workloads/common/counter_random.h"
#include "workloads/decode/decode_workload.h"
#include "workloads/decode/model.h"

namespace firebreak::workloads::decode {
namespace {

using workloads::testing::download;
using workloads::testing::SharedMemory;

struct Case {
  const char* name;
  Shape shape;
};

void PrintTo(const Case& shape_case, std::ostream* out) { *out << shape_case.name; }

class DecodeKernels : public ::testing::TestWithParam<Case> {
 protected:
  const Gpu gpu = workloads::testing::open_soft_gpu(ptx());
  Shape shape = GetParam().shape;
  Kernels kernels = find_kernels(gpu.module()).value();
  SharedMemory memory{gpu.driver()};
};

TEST_P(DecodeKernels, WeightsAreAFunctionOfTheSeedAndTheirPlace) {
  const Model model = Model::create(shape, 1, memory, memory).value();
  LaunchQueue queue(kernels, gpu.stream().handle());
  model.queue_weights(queue, 77);
  ASSERT_TRUE(queue.status());
  const auto weights = download<std::uint16_t>(gpu, memory.region("weights"));
  const std::vector<Tensor> tensors = lay_out(shape).tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    const std::uint64_t key = random_key(77, 1, i);
    for (std::uint64_t element = 0; element < tensor.count; element += 2) {
      const std::uint64_t bits = random_bits(key, element / 2);
      const float low = fmaf(signed_uniform(static_cast<std::uint32_t>(bits)), tensor.scale, tensor.offset);
      const float high =
          fmaf(signed_uniform(static_cast<std::uint32_t>(bits >> 32)), tensor.scale, tensor.offset);
      ASSERT_EQ(weights[tensor.begin + element], bfloat16_of_float(low))
          << "tensor " << i << " element " << element;
      ASSERT_EQ(weights[tensor.begin + element + 1], bfloat16_of_float(high)) << "tensor " << i;
    }
  }
}

TEST_P(DecodeKernels, LogitsAndChoicesFollowTheReference) {
  constexpr std::uint64_t steps = 9;
  constexpr Traffic traffic{
      .prompt_tokens_min = 2, .prompt_tokens_max = 4, .answer_tokens_min = 16, .answer_tokens_max = 16};
  const Model model = Model::create(shape, steps, memory, memory).value();
  LaunchQueue queue(kernels, gpu.stream().handle());
  model.queue_weights(queue, 3);
  const auto weights = download<std::uint16_t>(gpu, memory.region("weights"));

  std::vector<Reference> references(shape.streams, Reference(shape, weights));
  std::vector<std::uint32_t> last(shape.streams);
  Schedule schedule(shape, traffic, 3);
  for (std::uint64_t step = 0; step < steps; ++step) {
    const StepPlan plan = schedule.advance();
    model.queue_step(queue, plan);
    ASSERT_TRUE(queue.status()) << to_string(queue.status().error());
    const auto logits = download<float>(gpu, memory.region("logits"));
    const auto tokens = download<std::uint32_t>(gpu, memory.region("tokens"));
    for (std::uint32_t stream = 0; stream < shape.streams; ++stream) {
      const std::uint32_t token =
          plan.token[stream] == token_of_last_step ? last[stream] : plan.token[stream];
      const std::vector<double> expected = references[stream].next(token);
      const auto row = logits.begin() + stream * shape.vocabulary;
      for (std::uint32_t i = 0; i < shape.vocabulary; ++i) {
        ASSERT_NEAR(row[i], expected[i], 0.02) << "step " << step << " stream " << stream << " token " << i;
      }
      const auto best = std::max_element(row, row + shape.vocabulary) - row;
      last[stream] = static_cast<std::uint32_t>(best);
      EXPECT_EQ(tokens[step * shape.streams + stream], plan.samples[stream] != 0 ? last[stream] : no_token);
    }
  }
}

/// Every branch of a launch's shape: one lane and many a row, rows that end within a block, heads with and
/// without groups, pages of one token and of many, a block of several warps.
constexpr Case cases[] = {
    {"small",
     {.layers = 2,
      .hidden = 64,
      .heads = 4,
      .key_heads = 2,
      .head_size = 16,
      .intermediate = 128,
      .vocabulary = 256,
      .streams = 2,
      .page_tokens = 4,
      .pages = 16}},
    {"narrow",
     {.layers = 1,
      .hidden = 8,
      .heads = 1,
      .key_heads = 1,
      .head_size = 8,
      .intermediate = 24,
      .vocabulary = 19,
      .streams = 2,
      .page_tokens = 1,
      .pages = 64}},
    {"wide",
     {.layers = 1,
      .hidden = 264,
      .heads = 2,
      .key_heads = 2,
      .head_size = 64,
      .intermediate = 88,
      .vocabulary = 100,
      .streams = 4,
      .page_tokens = 16,
      .pages = 8}},
};
INSTANTIATE_TEST_SUITE_P(Shapes, DecodeKernels, ::testing::ValuesIn(cases),
                         [](const auto& shape_case) { return std::string(shape_case.param.name); });

}  // namespace
}  // namespace firebreak::workloads::decode
