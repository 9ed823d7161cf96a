// SPDX-License-Identifier: Apache-2.0
#include "workloads/decode/model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <vector>

#include "workloads/common/counter_random.h"

namespace firebreak::workloads::decode {
namespace {

constexpr std::uint64_t weights_purpose = 1;
constexpr std::uint32_t project_threads = 128;

[[maybe_unused]] bool is_possible(const Shape& shape) {
  const std::uint32_t query_size = shape.heads * shape.head_size;
  return shape.hidden % 8 == 0 && query_size % 8 == 0 && shape.intermediate % 8 == 0 &&
         shape.streams % 2 == 0 && shape.streams <= max_streams && std::has_single_bit(shape.head_size) &&
         shape.head_size >= 8 && std::has_single_bit(shape.page_tokens) && shape.heads % shape.key_heads == 0;
}

}  // namespace

Result<Kernels> find_kernels(const cuda::Module& module) {
  constexpr std::array names = {"decode_generate",  "decode_begin_step", "decode_embed",
                                "decode_norm",      "decode_project",    "decode_rotary",
                                "decode_attention", "decode_swiglu",     "decode_sample"};
  return Kernels::find(module, names);
}

Result<Model> Model::create(const Shape& shape, std::uint64_t slots, Memory& kept, Memory& scratch) {
  assert(is_possible(shape));
  Model model(shape);
  const std::uint64_t cache_elements = model.cache_elements_a_layer() * shape.layers;
  const auto floats = [&](std::uint64_t a_stream) { return a_stream * shape.streams * sizeof(float); };
  struct Allocation {
    Memory& memory;
    const char* name;
    std::uint64_t size_bytes;
    CUdeviceptr& address;
  };
  const std::vector<Allocation> allocations = {
      {kept, "weights", model.weights_layout_.elements * sizeof(std::uint16_t), model.weights_},
      {kept, "keys", cache_elements * sizeof(std::uint16_t), model.keys_},
      {kept, "values", cache_elements * sizeof(std::uint16_t), model.values_},
      {kept, "tokens", slots * shape.streams * sizeof(std::uint32_t), model.tokens_},
      {scratch, "plan", sizeof(StepPlan), model.plan_},
      {scratch, "residual", floats(shape.hidden), model.residual_},
      {scratch, "normed", floats(shape.hidden), model.normed_},
      {scratch, "qkv", floats(model.query_size() + 2 * model.key_size()), model.qkv_},
      {scratch, "attended", floats(model.query_size()), model.attended_},
      {scratch, "gate_up", floats(2 * shape.intermediate), model.gate_up_},
      {scratch, "gated", floats(shape.intermediate), model.gated_},
      {scratch, "logits", floats(shape.vocabulary), model.logits_},
  };
  for (const Allocation& allocation : allocations) {
    const auto address = allocation.memory.allocate(allocation.name, allocation.size_bytes);
    if (!address) return propagate(address);
    allocation.address = *address;
  }
  return model;
}

void Model::queue_weights(LaunchQueue& queue, std::uint64_t seed) const {
  const std::vector<Tensor> tensors = weights_layout_.tensors();
  for (std::uint64_t i = 0; i < tensors.size(); ++i) {
    const auto chunks = static_cast<std::uint32_t>(tensors[i].count / 8);
    queue.launch_each(Kernel::Generate, chunks,
                      GenerateArguments{.out = device_pointer<std::uint16_t>(weights_, tensors[i].begin),
                                        .key = random_key(seed, weights_purpose, i),
                                        .chunks = chunks,
                                        .scale = tensors[i].scale,
                                        .offset = tensors[i].offset});
  }
}

void Model::queue_begin(LaunchQueue& queue, const StepPlan& plan) const {
  queue.launch(Kernel::BeginStep, {},
               BeginStepArguments{.out = device_pointer<StepPlan>(plan_), .plan = plan});
}

void Model::queue_step(LaunchQueue& queue, const StepPlan& plan) const {
  queue_begin(queue, plan);
  queue.launch(Kernel::Embed,
               {.grid = {.x = shape_.streams}, .block = {.x = std::min(shape_.hidden / 2, 256u)}},
               EmbedArguments{.plan = device_pointer<StepPlan>(plan_),
                              .tokens = device_pointer<std::uint32_t>(tokens_),
                              .table = weights_of(weights_layout_.embedding),
                              .out = device_pointer<float>(residual_),
                              .hidden = shape_.hidden,
                              .streams = shape_.streams});
  for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
    queue_attention(queue, layer);
    queue_mlp(queue, layer);
  }
  queue_sample(queue);
}

void Model::queue_attention(LaunchQueue& queue, std::uint32_t layer) const {
  const LayerWeights& weights = weights_layout_.layers[layer];
  auto* keys = device_pointer<std::uint16_t>(keys_, layer * cache_elements_a_layer());
  auto* values = device_pointer<std::uint16_t>(values_, layer * cache_elements_a_layer());
  norm(queue, weights.attention_norm);
  project(queue, weights.qkv, normed_, qkv_, {query_size() + 2 * key_size(), shape_.hidden});
  queue.launch_each(Kernel::Rotary, shape_.streams * (query_size() + 2 * key_size()) / 2,
                    RotaryArguments{.plan = device_pointer<StepPlan>(plan_),
                                    .qkv = device_pointer<float>(qkv_),
                                    .keys = keys,
                                    .values = values,
                                    .heads = shape_.heads,
                                    .key_heads = shape_.key_heads,
                                    .head_size = shape_.head_size,
                                    .page_tokens = shape_.page_tokens,
                                    .streams = shape_.streams});
  const std::uint32_t threads = std::max(32u, 2 * shape_.head_size);
  const std::uint32_t longest = max_pages_per_stream * shape_.page_tokens;
  const auto shared_bytes =
      static_cast<std::uint32_t>((shape_.head_size + 3 * threads + longest) * sizeof(float));
  queue.launch(
      Kernel::Attention,
      {.grid = {.x = shape_.heads, .y = shape_.streams},
       .block = {.x = threads},
       .shared_bytes = shared_bytes},
      AttentionArguments{.plan = device_pointer<StepPlan>(plan_),
                         .qkv = device_pointer<float>(qkv_),
                         .keys = keys,
                         .values = values,
                         .out = device_pointer<float>(attended_),
                         .heads = shape_.heads,
                         .key_heads = shape_.key_heads,
                         .head_size = shape_.head_size,
                         .page_shift = static_cast<std::uint32_t>(std::countr_zero(shape_.page_tokens)),
                         .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_size))});
  project(queue, weights.output, attended_, residual_, {shape_.hidden, query_size(), true});
}

void Model::queue_mlp(LaunchQueue& queue, std::uint32_t layer) const {
  const LayerWeights& weights = weights_layout_.layers[layer];
  norm(queue, weights.mlp_norm);
  project(queue, weights.gate_up, normed_, gate_up_, {2 * shape_.intermediate, shape_.hidden});
  const std::uint32_t count = shape_.streams * shape_.intermediate;
  queue.launch_each(Kernel::Swiglu, count,
                    SwigluArguments{.gate_up = device_pointer<float>(gate_up_),
                                    .out = device_pointer<float>(gated_),
                                    .intermediate = shape_.intermediate,
                                    .count = count});
  project(queue, weights.down, gated_, residual_, {shape_.hidden, shape_.intermediate, true});
}

void Model::queue_sample(LaunchQueue& queue) const {
  norm(queue, weights_layout_.final_norm);
  project(queue, weights_layout_.head, normed_, logits_, {shape_.vocabulary, shape_.hidden});
  const std::uint32_t threads = std::min(1024u, power_of_two_up_to(shape_.vocabulary / 4));
  queue.launch(Kernel::Sample,
               {.grid = {.x = shape_.streams},
                .block = {.x = threads},
                .shared_bytes = static_cast<std::uint32_t>(threads * sizeof(std::uint64_t))},
               SampleArguments{.plan = device_pointer<StepPlan>(plan_),
                               .logits = device_pointer<float>(logits_),
                               .tokens = device_pointer<std::uint32_t>(tokens_),
                               .vocabulary = shape_.vocabulary,
                               .streams = shape_.streams});
}

void Model::norm(LaunchQueue& queue, const Tensor& weights) const {
  const std::uint32_t threads = std::min(256u, power_of_two_up_to(shape_.hidden / 2));
  queue.launch(Kernel::Norm,
               {.grid = {.x = shape_.streams},
                .block = {.x = threads},
                .shared_bytes = static_cast<std::uint32_t>(threads * sizeof(float))},
               NormArguments{.in = device_pointer<float>(residual_),
                             .weights = weights_of(weights),
                             .out = device_pointer<float>(normed_),
                             .hidden = shape_.hidden});
}

void Model::project(LaunchQueue& queue, const Tensor& weights, CUdeviceptr in, CUdeviceptr out,
                    Projection size) const {
  const std::uint32_t lanes = std::min(32u, power_of_two_up_to(size.columns / 8));
  const std::uint32_t rows_a_block = project_threads / lanes;
  queue.launch(Kernel::Project,
               {.grid = {.x = shape_.streams / 2, .y = (size.rows + rows_a_block - 1) / rows_a_block},
                .block = {.x = project_threads}},
               ProjectArguments{.weights = weights_of(weights),
                                .in = device_pointer<float>(in),
                                .out = device_pointer<float>(out),
                                .rows = size.rows,
                                .columns = size.columns,
                                .lanes = lanes,
                                .accumulate = size.accumulates ? 1u : 0u});
}

}  // namespace firebreak::workloads::decode
