// SPDX-License-Identifier: Apache-2.0
/// The dimensions of the decoder and what its kernels are given. Shared by the host and the GPU: the layout
/// of every struct here is the layout of a kernel's parameter.
#pragma once

#include <cstdint>

namespace firebreak::workloads::decode {

/// Upper bounds that fix the layout of StepPlan and of the committed state.
inline constexpr std::uint32_t max_streams = 8;
inline constexpr std::uint32_t max_pages_per_stream = 32;

/// Value of StepPlan::token: the token is the one that the step before sampled.
inline constexpr std::uint32_t token_of_last_step = 0xffffffffu;
/// Value in the token slots: this step read a prompt and sampled nothing.
inline constexpr std::uint32_t no_token = 0xffffffffu;

/// One model and one batch. `columns`-like sizes (hidden, heads * head_size, intermediate) are multiples of
/// 8, `streams` is even, `head_size` and `page_tokens` are powers of two.
struct Shape {
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  std::uint32_t heads = 0;
  std::uint32_t key_heads =
      0;  ///< grouped-query attention: heads / key_heads queries share one key and value
  std::uint32_t head_size = 0;
  std::uint32_t intermediate = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t streams = 0;
  std::uint32_t page_tokens = 0;
  std::uint32_t pages = 0;
};

/// Plan of one step, decided by the host from committed state alone.
struct alignas(16) StepPlan {
  std::uint32_t slot = 0;                    ///< row of the token slots that this step writes
  std::uint32_t token[max_streams] = {};     ///< the input token, or token_of_last_step
  std::uint32_t position[max_streams] = {};  ///< position of that token in its sequence
  std::uint32_t samples[max_streams] = {};   ///< 0 while the prompt is being read
  std::uint16_t pages[max_streams][max_pages_per_stream] = {};  ///< the block table
  std::uint32_t padding[3] = {};
};
static_assert(sizeof(StepPlan) % 16 == 0);

struct GenerateArguments {
  std::uint16_t* out;  ///< bfloat16, 16-byte aligned
  std::uint64_t key;
  std::uint32_t chunks;  ///< number of chunks of 8 values
  float scale;
  float offset;
};

struct BeginStepArguments {
  StepPlan* out;
  StepPlan plan;
};

struct EmbedArguments {
  const StepPlan* plan;
  const std::uint32_t* tokens;
  const std::uint16_t* table;  ///< [vocabulary][hidden]
  float* out;                  ///< [streams][hidden]
  std::uint32_t hidden;
  std::uint32_t streams;
};

struct NormArguments {
  const float* in;
  const std::uint16_t* weights;
  float* out;
  std::uint32_t hidden;
};

struct ProjectArguments {
  const std::uint16_t* weights;  ///< [rows][columns]
  const float* in;               ///< [streams][columns]
  float* out;                    ///< [streams][rows]
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t lanes;       ///< threads that share one row, a power of two up to 32
  std::uint32_t accumulate;  ///< 1: adds to `out`
};

struct RotaryArguments {
  const StepPlan* plan;
  float* qkv;           ///< [streams][heads + 2 * key_heads][head_size]; queries are rotated in place
  std::uint16_t* keys;  ///< [pages][key_heads][page_tokens][head_size], of one layer
  std::uint16_t* values;
  std::uint32_t heads;
  std::uint32_t key_heads;
  std::uint32_t head_size;
  std::uint32_t page_tokens;
  std::uint32_t streams;
};

struct AttentionArguments {
  const StepPlan* plan;
  const float* qkv;
  const std::uint16_t* keys;
  const std::uint16_t* values;
  float* out;  ///< [streams][heads][head_size]
  std::uint32_t heads;
  std::uint32_t key_heads;
  std::uint32_t head_size;
  std::uint32_t page_shift;  ///< log2(page_tokens)
  float scale;
};

struct SwigluArguments {
  const float* gate_up;  ///< [streams][2][intermediate]
  float* out;            ///< [streams][intermediate]
  std::uint32_t intermediate;
  std::uint32_t count;  ///< streams * intermediate
};

struct SampleArguments {
  const StepPlan* plan;
  const float* logits;    ///< [streams][vocabulary]
  std::uint32_t* tokens;  ///< [slots][streams]
  std::uint32_t vocabulary;
  std::uint32_t streams;
};

}  // namespace firebreak::workloads::decode
