// SPDX-License-Identifier: Apache-2.0
// nvcc 13.0 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a
//   -gencode arch=compute_90,code=[sm_90,compute_90] -fatbin, with --compress-mode=size (sample-zstd.fatbin)
//   and
//   --compress-mode=speed (sample-lz4.fatbin).
__device__ int counter = 3;
__constant__ float table[16];
extern "C" __global__ void k(float* p) {
  p[threadIdx.x] = table[threadIdx.x & 15] * counter;
  atomicAdd(&counter, 1);
}
