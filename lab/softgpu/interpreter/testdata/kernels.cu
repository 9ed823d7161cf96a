// SPDX-License-Identifier: Apache-2.0
// Ordinary CUDA kernels; kernels.ptx beside this file is what
//   nvcc -ptx -arch=compute_80 kernels.cu
// makes of them, with a licence line on top.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

template <class T>
__device__ void multiply_tiled(const T* a, const T* b, T* c, int n) {
  __shared__ T tile_a[32][32], tile_b[32][32];
  const int column = blockIdx.x * 32 + threadIdx.x;
  const int row = blockIdx.y * 32 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; k += 32) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < 32; ++i) sum += float(tile_a[threadIdx.y][i]) * float(tile_b[i][threadIdx.x]);
    __syncthreads();
  }
  c[row * n + column] = T(sum);
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

typedef float (*Binary)(float, float);
__device__ float add_values(float a, float b) { return a + b; }
__device__ float multiply_values(float a, float b) { return a * b; }
__device__ float power_values(float a, float b) { return powf(a, b); }
__device__ Binary operations[3] = {add_values, multiply_values, power_values};
__constant__ float weights[4] = {1, 2, 3, 4};

struct Numbers {
  int values[20];
};
__device__ __noinline__ int sum_first(Numbers numbers, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += numbers.values[i % 20];
  return sum;
}

extern __shared__ char dynamic_memory[];

extern "C" {

__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  for (int offset = 16; offset != 0; offset >>= 1) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int offset = 16; offset != 0; offset >>= 1) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}

__global__ void matmul_f32(const float* a, const float* b, float* c, int n) { multiply_tiled(a, b, c, n); }
__global__ void matmul_f16(const __half* a, const __half* b, __half* c, int n) { multiply_tiled(a, b, c, n); }
__global__ void matmul_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int n) {
  multiply_tiled(a, b, c, n);
}

__global__ void softmax(const float* in, float* out, int n) {
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < n; i += 32) largest = fmaxf(largest, in[i]);
  for (int offset = 16; offset != 0; offset >>= 1)
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) sum += expf(in[i] - largest);
  for (int offset = 16; offset != 0; offset >>= 1) sum += __shfl_xor_sync(~0u, sum, offset);
  for (int i = threadIdx.x; i < n; i += 32) out[i] = expf(in[i] - largest) / sum;
}

// x = exp(x * y + (x + y)), u = max(u * v, v), and sums of y and v behind the arrays.
__global__ void packed(__half2* x, const __half2* y, __nv_bfloat162* u, const __nv_bfloat162* v, int n) {
  const int i = threadIdx.x;
  x[i] = h2exp(__hfma2(x[i], y[i], __hadd2(x[i], y[i])));
  u[i] = __hmax2(__hmul2(u[i], v[i]), v[i]);
  atomicAdd(&x[n], y[i]);
  atomicAdd(&u[n], v[i]);
}

__global__ void histogram(const unsigned char* data, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 256) atomicAdd(&local[data[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__global__ void recurse(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

__global__ void call_pointers(float* x, const int* which) {
  const int i = threadIdx.x;
  x[i] = operations[which[i]](x[i], weights[i & 3]);
}

__global__ void local_array(int* out, const int* index, int n) {
  int a[16];
  for (int i = 0; i < 16; ++i) a[i] = i * i + threadIdx.x;
  for (int i = 0; i < n; ++i) a[index[i] & 15] += i;
  int sum = 0;
  for (int i = 0; i < 16; ++i) sum = sum * 31 + a[index[i] & 15];
  out[threadIdx.x] = sum;
}

__global__ void doubles(double* x) {
  const double v = x[threadIdx.x];
  x[threadIdx.x] = sin(v) + exp(v) * sqrt(fabs(v)) + pow(v, 3.0) + fmod(v, 1.5);
}

__global__ void large_angles(double* x) { x[threadIdx.x] = cos(x[threadIdx.x]); }

__global__ void switches(int* x) {
  const int i = threadIdx.x;
  switch (x[i]) {
    case 0:
      x[i] = 7;
      break;
    case 1:
      x[i] = 3 * i;
      break;
    case 2:
      x[i] = i * i * i;
      break;
    case 3:
      x[i] = ~i;
      break;
    case 4:
      x[i] = atomicAdd(x + 40, 1) >= 0;
      break;
    case 5:
      x[i] = __popc(i);
      break;
    case 6:
      x[i] = __clz(i);
      break;
    default:
      x[i] = -1;
  }
}

__global__ void structs(Numbers numbers, int* out, int k) {
  numbers.values[k % 20] = 5;
  out[threadIdx.x] = sum_first(numbers, k) + numbers.values[threadIdx.x % 20];
}

__global__ void warp_functions(unsigned* out, const unsigned* in) {
  const unsigned v = in[threadIdx.x];
  int all;
  unsigned* const mine = out + threadIdx.x * 16;
  mine[0] = __ballot_sync(~0u, v & 1);
  mine[1] = __reduce_add_sync(~0u, v);
  mine[2] = __match_any_sync(~0u, v & 3);
  mine[3] = __any_sync(~0u, v == 3);
  mine[4] = __all_sync(~0u, v < 1000);
  mine[5] = __match_all_sync(~0u, v >> 31, &all) + all;
  mine[6] = __syncthreads_count(v & 1);
  mine[7] = __syncthreads_or(v & 2);
  mine[8] = __byte_perm(v, v * 3, 0x3715);
  mine[9] = __funnelshift_l(v, v + 1, 3);
  mine[10] = __dp4a((int)v, (int)v, 3);
  mine[11] = __umulhi(v * 77777777u, v * 99999999u);
  mine[12] = __brev(v);
  mine[13] = __ffs(v);
  mine[14] = __shfl_up_sync(~0u, v, 3, 8);
  mine[15] = __shfl_sync(~0u, v, 5, 16);
}

__global__ void spin_lock(int* lock, int* counter) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *counter = *counter + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

__global__ void reverse_dynamic(float4* x) {
  float4* const tile = (float4*)dynamic_memory;
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void reverse_async(const float4* x, float4* y) {
  __shared__ float4 tile[32];
  __pipeline_memcpy_async(&tile[threadIdx.x], x + threadIdx.x, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  y[threadIdx.x] = tile[31 - threadIdx.x];
}

__global__ void collatz(unsigned* steps) {
  unsigned long long value = blockIdx.x * blockDim.x + threadIdx.x + 1;
  unsigned count = 0;
  while (value != 1) {
    value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    ++count;
  }
  steps[blockIdx.x * blockDim.x + threadIdx.x] = count;
}

__global__ void copy(const float4* from, float4* to, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];
}

__global__ void dependent_loop(unsigned* out, unsigned n) {
  unsigned x = threadIdx.x;
#pragma unroll 8
  for (unsigned i = 0; i < n; ++i) x = (x ^ i) * 1664525u + 1013904223u;
  out[threadIdx.x] = x;
}

}  // extern "C"
