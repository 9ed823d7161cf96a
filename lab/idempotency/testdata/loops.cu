// SPDX-License-Identifier: Apache-2.0
// Ordinary C++ with loops, exits and pointers that are hard to follow. loops.ptx beside this file is what
//   nvcc -ptx -arch=compute_80 loops.cu
// makes of it; a test runs that under the oracle. Of a case only the launch counts: what is right is found
// out by running it. A to D lie one behind the other, 16 KiB each, and hold small numbers.
#include <cstdint>

__constant__ int table[64];
__device__ int counters[64];

__device__ int index_of_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

// ---- Loops that data end ----

// case: stop_at_data grid=1 block=1 args=A,B
extern "C" __global__ void stop_at_data(int* a, const int* q) {
  const int first = a[18];
  for (int i = 0; i < 24; ++i) {
    a[i] = first + i;
    if (i + 1 == (q[i] & 1 ? 3 : 4)) break;
  }
}

// case: stop_at_moving_end grid=1 block=4 args=A,B,9
extern "C" __global__ void stop_at_moving_end(int* a, const int* q, int n) {
  const int seen = a[40 + threadIdx.x];
  int end = n;
  for (int i = 0; i != end && i < 48; i += 2) {
    a[i] = seen;
    end = q[i] & 1 ? end + 1 : n;
  }
}

// case: chase grid=1 block=8 args=A,B
extern "C" __global__ void chase(int* next, int* out) {
  int at = threadIdx.x;
  for (int step = 0; step < 30 && at != 0; ++step) {
    out[threadIdx.x * 32 + step] = at;
    at = next[at & 63] & 63;
  }
}

// case: collatz grid=2 block=16 args=A,B,37
extern "C" __global__ void collatz(const int* in, int* out, int n) {
  const int i = index_of_thread();
  if (i >= n) return;
  unsigned value = (in[i] & 31) + 1;
  int steps = 0;
  while (value != 1 && steps < 90) {
    value = value & 1 ? 3 * value + 1 : value / 2;
    out[i * 8 + (steps & 7)] = value;
    ++steps;
  }
}

// case: narrow_counter grid=1 block=1 args=A,B
extern "C" __global__ void narrow_counter(int* a, const int* q) {
  const int seen = a[70];
  std::uint16_t c = 65500;
  for (int i = 0; i < 80; ++i) {
    a[i] = seen + 1;
    c = static_cast<std::uint16_t>(c + (q[i] & 3));
    if (c > 65520) break;
  }
}

// case: wide_counter grid=1 block=2 args=A,B
extern "C" __global__ void wide_counter(int* a, const int* q) {
  const int seen = a[50 + threadIdx.x];
  unsigned long long c = ~0ULL - 20;
  for (int i = 0; c > 10 && i < 64; ++i) {
    a[i] = seen;
    c += 1 + (q[i] & 1);
  }
}

// case: grow_and_shrink grid=1 block=1 args=A,B,6
extern "C" __global__ void grow_and_shrink(int* a, const int* q, int n) {
  const int seen = a[30];
  int low = 0;
  int high = n;
  for (int round = 0; low < high && round < 40; ++round) {
    a[low] = seen + round;
    if (q[round] & 1)
      ++high;
    else
      ++low;
  }
}

// case: swap_bounds grid=1 block=1 args=A,B,5
extern "C" __global__ void swap_bounds(int* a, const int*, int n) {
  const int seen = a[25];
  int x = n;
  int y = 3 * n;
  for (int i = 0; i < x && i < 40; ++i) {
    a[i] = seen;
    const int kept = x;
    x = y;
    y = kept + (i & 1);
  }
}

// ---- Exits out of nested loops ----

// case: return_from_inside grid=1 block=1 args=A,B,7
// case: return_from_inside grid=1 block=1 args=A,B,2
extern "C" __global__ void return_from_inside(int* out, const int*, int n) {
  for (int i = 0;; ++i) {
#pragma unroll 1
    for (int j = 0; j < 5; ++j) {
      out[i * 5 + j] = i;
      if (i + j >= n) return;
    }
  }
}

// case: search_matrix grid=1 block=8 args=A,B,6
extern "C" __global__ void search_matrix(const int* matrix, int* found, int n) {
  const int wanted = threadIdx.x;
  for (int row = 0; row < n; ++row) {
    for (int column = 0; column < n; ++column) {
      found[wanted * 64 + row * n + column] = 1;
      if ((matrix[row * n + column] & 7) == wanted) goto done;
    }
  }
done:
  found[wanted * 64 + 63] = 2;
}

// case: continue_outer grid=1 block=2 args=A,B,8
extern "C" __global__ void continue_outer(const int* in, int* out, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      if (in[i + j] & 1) goto next;
      out[threadIdx.x * 128 + i * 8 + j] = j;
    }
    out[threadIdx.x * 128 + 100 + i] = i;
  next:;
  }
}

// case: triangle grid=2 block=8 args=A,B,9
extern "C" __global__ void triangle(const int* in, int* out, int n) {
  const int thread = index_of_thread();
  for (int i = thread; i < n; i += 3)
    for (int j = i; j < n; ++j) out[thread * 100 + i * n + j] = in[j * n + i];
}

// ---- Pointers ----

// case: from_the_end grid=1 block=32 args=A+16384,A,C
extern "C" __global__ void from_the_end(int* end, const int* in, const int* index) {
  const int i = index_of_thread();
  const int value = in[i + 4040] + 1;
  end[-1 - index[i]] = value;
}

// case: one_based grid=1 block=32 args=A+16380,B,C
extern "C" __global__ void one_based(int* first, const int* in, const int* index) {
  const int i = index_of_thread();
  first[1 + index[i]] = in[i] + 1;
}

// case: compact grid=1 block=1 args=A,B,40
extern "C" __global__ void compact(const int* in, int* out, int n) {
  int* to = out;
  for (const int* from = in; from != in + n; ++from)
    if (*from & 1) *to++ = *from;
  *to = -1;
}

// case: compact_in_place grid=1 block=1 args=A,A,40
extern "C" __global__ void compact_in_place(const int* in, int* out, int n) {
  int* to = out;
  for (int i = 0; i < n; ++i)
    if (in[i] & 1) *to++ = in[i] + 1;
}

// case: unrolled_increments grid=1 block=1 args=A,B
extern "C" __global__ void unrolled_increments(const int* in, char* out) {
  char* to = out;
#pragma unroll
  for (int i = 0; i < 12; ++i)
    if (in[i] > 0) to += 4 + i;
  *to = 1;
}

// case: characters grid=1 block=1 args=A,B,60
extern "C" __global__ void characters(const unsigned char* in, unsigned char* out, int n) {
  const unsigned char* from = in;
  while (from < in + n) {
    const unsigned char c = *from;
    *out++ = c;
    from += c < 128 ? 1 : c < 224 ? 2 : 3;
  }
}

// case: either_buffer grid=2 block=16 args=A,B,3
// case: either_buffer grid=2 block=16 args=A,A+64,20
extern "C" __global__ void either_buffer(int* a, int* b, int n) {
  const int i = index_of_thread();
  int* const to = i < n ? a : b;
  const int* const from = i < n ? b : a;
  to[i] = from[i] + 1;
}

// case: distance_through_shared grid=2 block=32 args=A,B
extern "C" __global__ void distance_through_shared(int* a, int* b) {
  __shared__ long long distance[32];
  distance[threadIdx.x] = reinterpret_cast<char*>(b) - reinterpret_cast<char*>(a) + 4LL * index_of_thread();
  __syncthreads();
  int* const at = reinterpret_cast<int*>(reinterpret_cast<char*>(a) + distance[threadIdx.x]);
  const int value = b[index_of_thread()];
  *at = value + 1;
}

// case: pointers_in_local grid=1 block=32 args=A,B,C
extern "C" __global__ void pointers_in_local(int* a, int* b, const int* which) {
  int* all[4] = {a, b, a + 64, b + 64};
  const int i = index_of_thread();
  const int value = a[i];
  all[which[i] & 3][i] = value + 1;
}

// case: shared_or_global grid=1 block=32 args=A,B,1
// case: shared_or_global grid=1 block=32 args=A,B,0
extern "C" __global__ void shared_or_global(int* a, int* b, int is_shared) {
  __shared__ int own[64];
  int* const at = is_shared ? own : a;
  at[threadIdx.x] = b[threadIdx.x];
  __syncthreads();
  b[threadIdx.x + 64] = at[threadIdx.x ^ 1];
}

// ---- Who comes first ----

// case: last_writer grid=2 block=32 args=A,B
extern "C" __global__ void last_writer(volatile int* leader, int* out) {
  const int i = index_of_thread();
  *leader = i;
  __syncthreads();
  if (*leader == i) out[i] = 1;
}

// case: take_a_slot grid=2 block=40 args=A,B,20
extern "C" __global__ void take_a_slot(const int* in, int* out, int most) {
  __shared__ int taken;
  if (threadIdx.x == 0) taken = 0;
  __syncthreads();
  const int slot = atomicAdd(&taken, 1);
  if (slot < most) out[index_of_thread()] = in[slot];
}

// case: shared_winner grid=1 block=64 args=A,B
extern "C" __global__ void shared_winner(const int* in, int* out) {
  __shared__ int winner;
  winner = threadIdx.x;
  __syncthreads();
  if (winner == threadIdx.x) out[threadIdx.x] = in[threadIdx.x];
}

// case: own_and_others grid=2 block=32 args=A,B
extern "C" __global__ void own_and_others(int* shared_by_four, int* out) {
  const int i = index_of_thread();
  shared_by_four[i / 4] = i;
  const int seen = shared_by_four[i / 4];
  out[seen] = i;
}

// case: histogram grid=2 block=32 args=A,B,50
extern "C" __global__ void histogram(const int* in, int* out, int n) {
  __shared__ int bins[32];
  bins[threadIdx.x & 31] = 0;
  __syncthreads();
  const int i = index_of_thread();
  if (i < n) atomicAdd(&bins[in[i] & 31], 1);
  __syncthreads();
  if (threadIdx.x < 32) out[blockIdx.x * 32 + threadIdx.x] = bins[threadIdx.x];
}

// ---- Variables, and functions ----

// case: through_the_alias grid=1 block=32 args=A,B
extern "C" __global__ void through_the_alias(int* out, int*) {
  const int value = table[threadIdx.x];
  int* const alias = const_cast<int*>(table);
  out[threadIdx.x] = value;
  *(volatile int*)(alias + threadIdx.x) = value + 1;
}

// case: count_here grid=2 block=32 args=A,B
extern "C" __global__ void count_here(const int* in, int*) { counters[in[index_of_thread()] & 31] = 1; }

[[noreturn]] __device__ __noinline__ void finish(int* at, int value) {
  *at = value;
  asm volatile("exit;");
  __builtin_unreachable();
}

// case: write_and_finish grid=2 block=32 args=A,B
extern "C" __global__ void write_and_finish(int* a, int*) {
  const int i = index_of_thread();
  finish(a + i, a[i] + 1);
}

__device__ __noinline__ int deeper(int* at, int depth) {
  *at = depth;
  return depth == 0 ? at[1] : deeper(at + 2, depth - 1);
}

// case: recursion grid=1 block=8 args=A,B,3
extern "C" __global__ void recursion(int* a, int* out, int n) {
  out[threadIdx.x] = deeper(a + 32 * threadIdx.x, n);
}

// ---- Ordinary work ----

// case: spmv grid=2 block=8 args=A,B,C
extern "C" __global__ void spmv(const int* rows, const int* columns, int* out) {
  const int row = index_of_thread();
  int sum = 0;
  for (int at = rows[row] & 31; at < (rows[row + 1] & 31); ++at) sum += columns[at];
  out[row] = sum;
}

// case: scan grid=1 block=64 args=A,B
extern "C" __global__ void scan(const int* in, int* out) {
  __shared__ int sums[64];
  sums[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int reach = 1; reach < 64; reach *= 2) {
    const int other = threadIdx.x >= reach ? sums[threadIdx.x - reach] : 0;
    __syncthreads();
    sums[threadIdx.x] += other;
    __syncthreads();
  }
  out[threadIdx.x] = sums[threadIdx.x];
}

// case: reduce grid=2 block=64 args=A,B
extern "C" __global__ void reduce(const int* in, int* out) {
  int value = in[index_of_thread()];
  for (int reach = 16; reach > 0; reach /= 2) value += __shfl_down_sync(0xffffffff, value, reach);
  if (threadIdx.x % 32 == 0) out[index_of_thread() / 32] = value;
}

// case: transpose grid=2,2 block=8,8 args=A,B,16
extern "C" __global__ void transpose(const int* in, int* out, int n) {
  __shared__ int tile[8][9];
  const int x = blockIdx.x * 8 + threadIdx.x;
  const int y = blockIdx.y * 8 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  out[(blockIdx.x * 8 + threadIdx.y) * n + blockIdx.y * 8 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

// case: sort_pairs grid=1 block=16 args=A,A,32
extern "C" __global__ void sort_pairs(int* a, int*, int n) {
  for (int round = 0; round < 4; ++round) {
    const int at = 2 * threadIdx.x + (round & 1);
    if (at + 1 < n && a[at] > a[at + 1]) {
      const int kept = a[at];
      a[at] = a[at + 1];
      a[at + 1] = kept;
    }
    __syncthreads();
  }
}

// case: backwards grid=2 block=8 args=A,B,33
extern "C" __global__ void backwards(const int* in, int* out, unsigned n) {
  for (unsigned i = n; i-- > 0;) out[index_of_thread() * 40 + i] = in[n - 1 - i];
}

// case: vectors grid=1 block=16 args=A,B,67
extern "C" __global__ void vectors(const int* in, int* out, int n) {
  int i = 4 * threadIdx.x;
  for (; i + 4 <= n; i += 64) *reinterpret_cast<int4*>(out + i) = *reinterpret_cast<const int4*>(in + i);
  for (int tail = n / 4 * 4 + threadIdx.x; tail < n; tail += 16) out[tail] = in[tail];
}

// case: choose grid=2 block=16 args=A,B,3
extern "C" __global__ void choose(const int* in, int* out, int n) {
  const int i = index_of_thread();
  switch (in[i] & 7) {
    case 0:
      out[i] = n;
      break;
    case 1:
      out[2 * i] = n;
      break;
    case 2:
      out[i + n] = in[i + 1];
      [[fallthrough]];
    case 3:
      out[i + 2 * n] = 1;
      break;
    case 5:
      out[100 - i] = 2;
      break;
    default:
      out[0] = 0;
  }
}

// case: binary_search grid=2 block=16 args=A,B,32
extern "C" __global__ void binary_search(const int* sorted, int* out, int n) {
  const int i = index_of_thread();
  int low = 0;
  int high = n;
  while (low < high) {
    const int middle = (low + high) / 2;
    out[i * 8 + (middle & 7)] = middle;
    if (sorted[middle] < i)
      low = middle + 1;
    else
      high = middle;
  }
  out[i * 8 + 1] = low;
}
