// SPDX-License-Identifier: Apache-2.0
// The decoder's kernels. Every sum is taken in an order that depends on the shape alone, never on timing, so
// that a step can be repeated by another process and gives the same bits. Weights, keys and values are
// bfloat16, sums float.

#include "workloads/common/counter_random.h"
#include "workloads/decode/decode_shape.h"

using namespace firebreak::workloads;
using namespace firebreak::workloads::decode;

// Outside of the unnamed namespace, whose mangled name would differ from checkout to checkout.
extern __shared__ float4 shared_memory[];

namespace {

struct Eight {
  float value[8];
};

__device__ Eight load_eight(const std::uint16_t* bfloat16s) {
  const uint4 packed = *reinterpret_cast<const uint4*>(bfloat16s);
  return {{low_bfloat16(packed.x), high_bfloat16(packed.x), low_bfloat16(packed.y), high_bfloat16(packed.y),
           low_bfloat16(packed.z), high_bfloat16(packed.z), low_bfloat16(packed.w), high_bfloat16(packed.w)}};
}

__device__ float dot_eight(const Eight& weights, const float* in, float sum) {
  const float4 low = reinterpret_cast<const float4*>(in)[0];
  const float4 high = reinterpret_cast<const float4*>(in)[1];
  sum = fmaf(weights.value[0], low.x, sum);
  sum = fmaf(weights.value[1], low.y, sum);
  sum = fmaf(weights.value[2], low.z, sum);
  sum = fmaf(weights.value[3], low.w, sum);
  sum = fmaf(weights.value[4], high.x, sum);
  sum = fmaf(weights.value[5], high.y, sum);
  sum = fmaf(weights.value[6], high.z, sum);
  return fmaf(weights.value[7], high.w, sum);
}

struct Add {
  template <class T>
  __device__ T operator()(T left, T right) const {
    return left + right;
  }
};

struct Greater {
  template <class T>
  __device__ T operator()(T left, T right) const {
    return left > right ? left : right;
  }
};

/// Combines one value of every thread of the block, as a binary tree; every thread gets the result.
/// `blockDim.x` is a power of two and `scratch` holds as many values.
template <class T, class Operation>
__device__ T reduce_block(T value, T* scratch, Operation operation) {
  __syncthreads();
  scratch[threadIdx.x] = value;
  for (std::uint32_t half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      scratch[threadIdx.x] = operation(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    }
  }
  __syncthreads();
  return scratch[0];
}

__device__ std::uint64_t element_of(const StepPlan& plan, std::uint32_t stream, std::uint32_t position,
                                    std::uint32_t page_shift, std::uint32_t key_heads, std::uint32_t key_head,
                                    std::uint32_t head_size) {
  const std::uint32_t page = plan.pages[stream][position >> page_shift];
  const std::uint32_t offset = position & ((1u << page_shift) - 1);
  return ((static_cast<std::uint64_t>(page * key_heads + key_head) << page_shift) + offset) * head_size;
}

}  // namespace

/// Fills a weight tensor with uniform numbers, offset +- scale.
extern "C" __global__ void decode_generate(GenerateArguments a) {
  const std::uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x;
  if (chunk >= a.chunks) return;
  std::uint32_t packed[4];
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint64_t bits = random_bits(a.key, static_cast<std::uint64_t>(chunk) * 4 + i);
    packed[i] =
        pack_bfloat16(fmaf(signed_uniform(static_cast<std::uint32_t>(bits)), a.scale, a.offset),
                      fmaf(signed_uniform(static_cast<std::uint32_t>(bits >> 32)), a.scale, a.offset));
  }
  reinterpret_cast<uint4*>(a.out)[chunk] = make_uint4(packed[0], packed[1], packed[2], packed[3]);
}

/// Brings the plan to the GPU as a kernel parameter: no staging buffer, whose reuse would need a wait.
extern "C" __global__ void decode_begin_step(const __grid_constant__ BeginStepArguments a) {
  const uint4* from = reinterpret_cast<const uint4*>(&a.plan);
#pragma unroll
  for (std::uint32_t i = 0; i < sizeof(StepPlan) / sizeof(uint4); ++i)
    reinterpret_cast<uint4*>(a.out)[i] = from[i];
}

/// One block a stream: the embedding of its input token.
extern "C" __global__ void decode_embed(EmbedArguments a) {
  const std::uint32_t stream = blockIdx.x;
  std::uint32_t token = a.plan->token[stream];
  if (token == token_of_last_step) token = a.tokens[(a.plan->slot - 1) * a.streams + stream];
  const std::uint16_t* row = a.table + static_cast<std::uint64_t>(token) * a.hidden;
  float* out = a.out + stream * a.hidden;
  for (std::uint32_t i = threadIdx.x * 2; i < a.hidden; i += blockDim.x * 2) {
    const std::uint32_t pair = *reinterpret_cast<const std::uint32_t*>(row + i);
    *reinterpret_cast<float2*>(out + i) = make_float2(low_bfloat16(pair), high_bfloat16(pair));
  }
}

/// One block a stream: x / rms(x) * weights.
extern "C" __global__ void decode_norm(NormArguments a) {
  const float* in = a.in + blockIdx.x * a.hidden;
  float* out = a.out + blockIdx.x * a.hidden;
  float squares = 0.0f;
  for (std::uint32_t i = threadIdx.x * 2; i < a.hidden; i += blockDim.x * 2) {
    const float2 pair = *reinterpret_cast<const float2*>(in + i);
    squares = fmaf(pair.y, pair.y, fmaf(pair.x, pair.x, squares));
  }
  const float sum = reduce_block(squares, reinterpret_cast<float*>(shared_memory), Add{});
  const float factor = 1.0f / sqrtf(sum / static_cast<float>(a.hidden) + 1e-5f);
  for (std::uint32_t i = threadIdx.x * 2; i < a.hidden; i += blockDim.x * 2) {
    const float2 pair = *reinterpret_cast<const float2*>(in + i);
    const std::uint32_t weights = *reinterpret_cast<const std::uint32_t*>(a.weights + i);
    *reinterpret_cast<float2*>(out + i) =
        make_float2(pair.x * factor * low_bfloat16(weights), pair.y * factor * high_bfloat16(weights));
  }
}

/// Computes out = weights * in for two streams (blockIdx.x) and a block of rows (blockIdx.y); `lanes` threads
/// share a row.
extern "C" __global__ void decode_project(ProjectArguments a) {
  const std::uint32_t lane = threadIdx.x & (a.lanes - 1);
  const std::uint32_t row = (blockIdx.y * blockDim.x + threadIdx.x) / a.lanes;
  const std::uint16_t* weights = a.weights + static_cast<std::uint64_t>(row < a.rows ? row : 0) * a.columns;
  const float* first_in = a.in + blockIdx.x * 2 * a.columns;
  const float* second_in = first_in + a.columns;
  float first = 0.0f;
  float second = 0.0f;
  for (std::uint32_t column = lane * 8; column < a.columns; column += a.lanes * 8) {
    const Eight eight = load_eight(weights + column);
    first = dot_eight(eight, first_in + column, first);
    second = dot_eight(eight, second_in + column, second);
  }
  for (std::uint32_t offset = a.lanes / 2; offset > 0; offset /= 2) {
    first += __shfl_xor_sync(0xffffffffu, first, offset);
    second += __shfl_xor_sync(0xffffffffu, second, offset);
  }
  if (lane != 0 || row >= a.rows) return;
  float* out = a.out + blockIdx.x * 2 * a.rows + row;
  out[0] = a.accumulate != 0 ? out[0] + first : first;
  out[a.rows] = a.accumulate != 0 ? out[a.rows] + second : second;
}

/// One thread a pair of dimensions: rotates queries in place and keys on their way into the cache, stores
/// values.
extern "C" __global__ void decode_rotary(RotaryArguments a) {
  const std::uint32_t pairs = a.head_size / 2;
  const std::uint32_t all_heads = a.heads + 2 * a.key_heads;
  const std::uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= a.streams * all_heads * pairs) return;
  const std::uint32_t pair = index % pairs;
  const std::uint32_t head = index / pairs % all_heads;
  const std::uint32_t stream = index / pairs / all_heads;
  const std::uint32_t position = a.plan->position[stream];
  float2* in = reinterpret_cast<float2*>(a.qkv) + index;
  float2 value = *in;
  if (head < a.heads + a.key_heads) {
    // 10000^(-2 pair / head_size) / (2 pi), as turns for every position.
    const float exponent = -13.2877124f * static_cast<float>(2 * pair) / static_cast<float>(a.head_size);
    const float turns = static_cast<float>(position) * (exponential2(exponent) * 0.159154943f);
    const float sine = sine_of_turns(turns);
    const float cosine = cosine_of_turns(turns);
    value = make_float2(fmaf(value.x, cosine, -(value.y * sine)), fmaf(value.x, sine, value.y * cosine));
  }
  if (head < a.heads) {
    *in = value;
    return;
  }
  const bool is_key = head < a.heads + a.key_heads;
  const std::uint32_t key_head = head - a.heads - (is_key ? 0 : a.key_heads);
  const std::uint32_t page = a.plan->pages[stream][position / a.page_tokens];
  const std::uint64_t row = static_cast<std::uint64_t>(page * a.key_heads + key_head) * a.page_tokens;
  std::uint16_t* out = (is_key ? a.keys : a.values) + (row + position % a.page_tokens) * a.head_size;
  reinterpret_cast<std::uint32_t*>(out)[pair] = pack_bfloat16(value.x, value.y);
}

/// One block a head (blockIdx.x) and stream (blockIdx.y). Shared memory: the query, a value a thread, a
/// float2 a thread, the scores.
extern "C" __global__ void decode_attention(AttentionArguments a) {
  const std::uint32_t head = blockIdx.x;
  const std::uint32_t stream = blockIdx.y;
  const std::uint32_t key_head = head / (a.heads / a.key_heads);
  const StepPlan& plan = *a.plan;
  const std::uint32_t length = plan.position[stream] + 1;
  float* query = reinterpret_cast<float*>(shared_memory);
  float* scratch = query + a.head_size;
  float2* partial = reinterpret_cast<float2*>(scratch + blockDim.x);
  float* scores = reinterpret_cast<float*>(partial + blockDim.x);

  const float* query_in = a.qkv + (stream * (a.heads + 2 * a.key_heads) + head) * a.head_size;
  for (std::uint32_t i = threadIdx.x; i < a.head_size; i += blockDim.x) query[i] = query_in[i] * a.scale;
  __syncthreads();

  float highest = -3.0e38f;
  for (std::uint32_t t = threadIdx.x; t < length; t += blockDim.x) {
    const std::uint16_t* key =
        a.keys + element_of(plan, stream, t, a.page_shift, a.key_heads, key_head, a.head_size);
    float sum = 0.0f;
    for (std::uint32_t i = 0; i < a.head_size; i += 8) sum = dot_eight(load_eight(key + i), query + i, sum);
    scores[t] = sum;
    highest = fmaxf(highest, sum);
  }
  highest = reduce_block(highest, scratch, Greater{});
  float total = 0.0f;
  for (std::uint32_t t = threadIdx.x; t < length; t += blockDim.x) {
    scores[t] = exponential(scores[t] - highest);
    total += scores[t];
  }
  total = reduce_block(total, scratch, Add{});

  const std::uint32_t pairs = a.head_size / 2;
  const std::uint32_t pair = threadIdx.x % pairs;
  const std::uint32_t groups = blockDim.x / pairs;
  float2 sum = make_float2(0.0f, 0.0f);
  for (std::uint32_t t = threadIdx.x / pairs; t < length; t += groups) {
    const std::uint16_t* value =
        a.values + element_of(plan, stream, t, a.page_shift, a.key_heads, key_head, a.head_size);
    const std::uint32_t packed = reinterpret_cast<const std::uint32_t*>(value)[pair];
    sum.x = fmaf(scores[t], low_bfloat16(packed), sum.x);
    sum.y = fmaf(scores[t], high_bfloat16(packed), sum.y);
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= pairs) return;
  for (std::uint32_t group = 1; group < groups; ++group) {
    sum.x += partial[group * pairs + pair].x;
    sum.y += partial[group * pairs + pair].y;
  }
  float2* out = reinterpret_cast<float2*>(a.out + (stream * a.heads + head) * a.head_size);
  out[pair] = make_float2(sum.x / total, sum.y / total);
}

/// silu(gate) * up, one thread an element.
extern "C" __global__ void decode_swiglu(SwigluArguments a) {
  const std::uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= a.count) return;
  const std::uint32_t stream = index / a.intermediate;
  const float* gate = a.gate_up + index + stream * a.intermediate;
  a.out[index] = silu(gate[0]) * gate[a.intermediate];
}

/// One block a stream: the token of the highest logit, the lowest such token in a tie.
extern "C" __global__ void decode_sample(SampleArguments a) {
  const std::uint32_t stream = blockIdx.x;
  const float* logits = a.logits + stream * a.vocabulary;
  std::uint64_t best = 0;
  for (std::uint32_t token = threadIdx.x; token < a.vocabulary; token += blockDim.x) {
    const std::uint32_t bits = bits_of_float(logits[token]);
    // Unsigned order of `ordered` is the order of the floats.
    const std::uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
    const std::uint64_t candidate = (static_cast<std::uint64_t>(ordered) << 32) | (~token & 0xffffffffu);
    best = candidate > best ? candidate : best;
  }
  best = reduce_block(best, reinterpret_cast<std::uint64_t*>(shared_memory), Greater{});
  if (threadIdx.x != 0) return;
  const bool samples = a.plan->samples[stream] != 0;
  a.tokens[a.plan->slot * a.streams + stream] = samples ? ~static_cast<std::uint32_t>(best) : no_token;
}
