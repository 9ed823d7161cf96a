// SPDX-License-Identifier: Apache-2.0
// reduce.ptx is this file as nvcc -ptx -arch=compute_80 translates it.
extern __shared__ float tile[];
__constant__ float weights[4] = {0.5f, 1.f, 2.f, 4.f};
__device__ unsigned finished;
__device__ unsigned* finished_address = &finished;

__device__ __noinline__ float scaled(const float* values, int index) {
  return values[index] * weights[index & 3];
}

extern "C" __global__ void __launch_bounds__(256, 2)
    reduce(float* out, const float* __restrict__ in, int count) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += scaled(in, i);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  tile[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < blockDim.x / 32; ++i) sum += partial[i];
    out[blockIdx.x] = sum + tile[1];
    __threadfence();
    atomicAdd(finished_address, 1);
  }
}
