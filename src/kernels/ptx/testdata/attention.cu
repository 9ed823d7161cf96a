// SPDX-License-Identifier: Apache-2.0
// attention.ptx is this file as nvcc -ptx -arch=compute_90 translates it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct Shape {
  int heads, width;
  float scale;
};

extern "C" __global__ void scores(float4* out, const __nv_bfloat162* query, const __half2* key, Shape shape) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  float local[8];
  for (int i = 0; i < 8; ++i) local[i] = __bfloat162float(query[row * 8 + i].x) * __half2float(key[i].y);
  const float picked = local[row & 7] * shape.scale;
  float4 result = out[row];
  result.x = expf(picked);
  result.y = rsqrtf(picked) + __sinf(picked);
  result.z = static_cast<float>(static_cast<int>(picked) / shape.width);
  result.w = __reduce_add_sync(~0u, row) > shape.heads ? __logf(picked) : tanhf(picked);
  switch (shape.heads) {
    case 0:
      result.x *= 2;
      break;
    case 1:
      result.y = __popc(row);
      break;
    default:
      __trap();
  }
  out[row] = result;
}
