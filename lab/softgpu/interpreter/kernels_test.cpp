// SPDX-License-Identifier: Apache-2.0
/// Kernels as nvcc makes them (testdata/kernels.cu), against the same computation on the CPU.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "softgpu/interpreter/half.h"
#include "softgpu/interpreter/test_gpu.h"

namespace firebreak::softgpu {
namespace {

using testing::TestGpu;

std::string read_kernels() {
  std::ifstream file(FIREBREAK_TEST_DATA "/kernels.ptx");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The same numbers every time; small enough for exact sums.
std::vector<float> small_numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 37 + 11) % 23) * 0.125F - 1.0F;
  return values;
}

class Kernels : public ::testing::Test {
 protected:
  void SetUp() override { gpu.use(read_kernels()); }
  TestGpu gpu;
};

TEST_F(Kernels, ReduceAddsAllNumbers) {
  const std::vector<float> numbers = small_numbers(10'000);
  const std::uint64_t in = gpu.upload(numbers);
  const std::uint64_t out = gpu.upload(std::vector<float>{0});
  gpu.complete("reduce", {7}, {128}, in, out, 10'000);
  EXPECT_EQ(gpu.download<float>(out, 1)[0], std::accumulate(numbers.begin(), numbers.end(), 0.0F));
}

constexpr std::size_t matrix_size = 64;

std::vector<float> multiply(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(matrix_size * matrix_size);
  for (std::size_t row = 0; row < matrix_size; ++row) {
    for (std::size_t column = 0; column < matrix_size; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < matrix_size; ++k) {
        sum = std::fma(a[row * matrix_size + k], b[k * matrix_size + column], sum);
      }
      c[row * matrix_size + column] = sum;
    }
  }
  return c;
}

TEST_F(Kernels, MatmulInFloatIsBitExact) {
  std::vector<float> a = small_numbers(matrix_size * matrix_size);
  std::vector<float> b = a;
  std::reverse(b.begin(), b.end());
  for (float& value : a) value *= 1.1F;
  const std::uint64_t da = gpu.upload(a);
  const std::uint64_t db = gpu.upload(b);
  const std::uint64_t dc = gpu.allocate(a.size() * 4);
  gpu.complete("matmul_f32", {2, 2}, {32, 32}, da, db, dc, static_cast<int>(matrix_size));
  EXPECT_EQ(gpu.download<float>(dc, a.size()), multiply(a, b));
}

template <class Small, class Encode>
void check_small_matmul(TestGpu& gpu, const std::string& kernel, Encode encode) {
  std::vector<float> a = small_numbers(matrix_size * matrix_size);
  std::vector<float> b = a;
  std::reverse(b.begin(), b.end());
  std::vector<std::uint16_t> small_a(a.size());
  std::vector<std::uint16_t> small_b(a.size());
  std::transform(a.begin(), a.end(), small_a.begin(), [&](float value) { return encode(value).bits; });
  std::transform(b.begin(), b.end(), small_b.begin(), [&](float value) { return encode(value).bits; });
  const std::uint64_t da = gpu.upload(small_a);
  const std::uint64_t db = gpu.upload(small_b);
  const std::uint64_t dc = gpu.allocate(a.size() * 2);
  gpu.complete(kernel, {2, 2}, {32, 32}, da, db, dc, static_cast<int>(matrix_size));
  const std::vector<float> expected = multiply(a, b);
  std::vector<std::uint16_t> expected_small(a.size());
  std::transform(expected.begin(), expected.end(), expected_small.begin(),
                 [&](float value) { return encode(value).bits; });
  EXPECT_EQ(gpu.download<std::uint16_t>(dc, a.size()), expected_small);
}

TEST_F(Kernels, MatmulInHalfIsBitExact) {
  check_small_matmul<Half>(gpu, "matmul_f16", [](float value) { return to_half(value); });
}
TEST_F(Kernels, MatmulInBfloatIsBitExact) {
  check_small_matmul<Bfloat>(gpu, "matmul_bf16", [](float value) { return to_bfloat(value); });
}

TEST_F(Kernels, SoftmaxSumsToOne) {
  const std::vector<float> in = small_numbers(77);
  const std::uint64_t din = gpu.upload(in);
  const std::uint64_t dout = gpu.allocate(in.size() * 4);
  gpu.complete("softmax", {1}, {32}, din, dout, 77);
  double sum = 0;
  for (const float value : in) sum += std::exp(static_cast<double>(value));
  const std::vector<float> out = gpu.download<float>(dout, in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_NEAR(out[i], std::exp(static_cast<double>(in[i])) / sum, 1e-8) << i;
  }
}

TEST_F(Kernels, PackedHalves) {
  std::vector<std::uint16_t> x(66);
  std::vector<std::uint16_t> y(64);
  std::vector<std::uint16_t> u(66);
  std::vector<std::uint16_t> v(64);
  for (std::size_t i = 0; i < 64; ++i) {
    x[i] = to_half(static_cast<float>(i) * 0.03125F - 1).bits;
    y[i] = to_half(0.5F).bits;
    u[i] = to_bfloat(static_cast<float>(i) - 32).bits;
    v[i] = to_bfloat(0.25F).bits;
  }
  const std::uint64_t dx = gpu.upload(x);
  const std::uint64_t dy = gpu.upload(y);
  const std::uint64_t du = gpu.upload(u);
  const std::uint64_t dv = gpu.upload(v);
  gpu.complete("packed", {1}, {32}, dx, dy, du, dv, 32);
  const auto new_x = gpu.download<std::uint16_t>(dx, 66);
  const auto new_u = gpu.download<std::uint16_t>(du, 66);
  for (std::size_t i = 0; i < 64; ++i) {
    const float before = to_float(Half{x[i]});
    const float exact = std::exp(before * 0.5F + before + 0.5F);
    EXPECT_NEAR(to_float(Half{new_x[i]}), exact, exact * 0.004F) << i;
    EXPECT_EQ(to_float(Bfloat{new_u[i]}), std::max((static_cast<float>(i) - 32) * 0.25F, 0.25F)) << i;
  }
  EXPECT_EQ(to_float(Half{new_x[64]}), 16.0F);
  EXPECT_EQ(to_float(Bfloat{new_u[65]}), 8.0F);
}

TEST_F(Kernels, Histogram) {
  std::vector<std::uint8_t> data(5000);
  std::vector<std::uint32_t> expected(256);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::uint8_t>(i * i % 251);
    ++expected[data[i]];
  }
  const std::uint64_t in = gpu.upload(data);
  const std::uint64_t bins = gpu.allocate(256 * 4);
  gpu.complete("histogram", {1}, {256}, in, bins, 5000);
  EXPECT_EQ(gpu.download<std::uint32_t>(bins, 256), expected);
}

TEST_F(Kernels, Recursion) {
  const std::uint64_t out = gpu.allocate(48 * 4);
  gpu.complete("recurse", {1}, {48}, out);
  const std::array<int, 12> fibonacci = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  const auto results = gpu.download<int>(out, 48);
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], fibonacci[i % 12]) << i;
}

TEST_F(Kernels, FunctionPointers) {
  std::vector<float> x(40, 3.0F);
  std::vector<int> which(40);
  for (std::size_t i = 0; i < which.size(); ++i) which[i] = static_cast<int>(i % 3);
  const std::uint64_t dx = gpu.upload(x);
  gpu.complete("call_pointers", {1}, {40}, dx, gpu.upload(which));
  const auto results = gpu.download<float>(dx, 40);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto weight = static_cast<float>(i % 4 + 1);
    const std::array<float, 3> expected = {3 + weight, 3 * weight, std::pow(3.0F, weight)};
    EXPECT_NEAR(results[i], expected[i % 3], 1e-4F) << i;
  }
}

TEST_F(Kernels, LocalArrays) {
  const std::vector<int> index = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 15};
  const std::uint64_t out = gpu.allocate(33 * 4);
  gpu.complete("local_array", {1}, {33}, out, gpu.upload(index), 16);
  const auto results = gpu.download<int>(out, 33);
  for (int thread = 0; thread < 33; ++thread) {
    std::array<int, 16> a{};
    for (int i = 0; i < 16; ++i) a[static_cast<std::size_t>(i)] = i * i + thread;
    for (int i = 0; i < 16; ++i) a[static_cast<std::size_t>(index[static_cast<std::size_t>(i)])] += i;
    std::uint32_t sum = 0;
    for (const int i : index) sum = sum * 31 + static_cast<std::uint32_t>(a[static_cast<std::size_t>(i)]);
    EXPECT_EQ(results[static_cast<std::size_t>(thread)], static_cast<int>(sum)) << thread;
  }
}

TEST_F(Kernels, DoublePrecisionMathematics) {
  std::vector<double> x(33);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) * 0.37 - 5;
  const std::uint64_t dx = gpu.upload(x);
  gpu.complete("doubles", {1}, {33}, dx);
  const auto results = gpu.download<double>(dx, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = std::sin(x[i]) + std::exp(x[i]) * std::sqrt(std::fabs(x[i])) +
                            std::pow(x[i], 3.0) + std::fmod(x[i], 1.5);
    EXPECT_NEAR(results[i], expected, std::fabs(expected) * 1e-13 + 1e-13) << i;
  }
}

TEST_F(Kernels, LargeAnglesTakeTheSlowPath) {
  std::vector<double> x = {1e6, 1e15, -3e100, 0.1, 1e308};
  const std::uint64_t dx = gpu.upload(x);
  gpu.complete("large_angles", {1}, {5}, dx);
  const auto results = gpu.download<double>(dx, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(results[i], std::cos(x[i]), 1e-15) << x[i];
}

TEST_F(Kernels, SwitchesDiverge) {
  std::vector<int> x(41);
  for (int i = 0; i < 40; ++i) x[static_cast<std::size_t>(i)] = i % 9;
  const std::uint64_t dx = gpu.upload(x);
  gpu.complete("switches", {1}, {40}, dx);
  const auto results = gpu.download<int>(dx, 41);
  for (int i = 0; i < 40; ++i) {
    const std::array<int, 9> expected = {7,
                                         3 * i,
                                         i * i * i,
                                         ~i,
                                         1,
                                         std::popcount(static_cast<unsigned>(i)),
                                         std::countl_zero(static_cast<unsigned>(i)),
                                         -1,
                                         -1};
    EXPECT_EQ(results[static_cast<std::size_t>(i)], expected[static_cast<std::size_t>(i % 9)]) << i;
  }
  EXPECT_EQ(results[40], 4);
}

TEST_F(Kernels, StructsByValue) {
  struct Numbers {
    std::array<int, 20> values;
  } numbers;
  std::iota(numbers.values.begin(), numbers.values.end(), 100);
  const std::uint64_t out = gpu.allocate(32 * 4);
  gpu.complete("structs", {1}, {32}, numbers, out, 23);
  numbers.values[3] = 5;
  const int sum = std::accumulate(numbers.values.begin(), numbers.values.end(), 0) + 100 + 101 + 102;
  const auto results = gpu.download<int>(out, 32);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(results[i], sum + numbers.values[i % 20]) << i;
}

TEST_F(Kernels, WarpFunctions) {
  std::vector<std::uint32_t> in(32);
  for (std::uint32_t i = 0; i < 32; ++i) in[i] = i * 5 + 3;
  const std::uint64_t out = gpu.allocate(32 * 16 * 4);
  gpu.complete("warp_functions", {1}, {32}, out, gpu.upload(in));
  const auto all = gpu.download<std::uint32_t>(out, 32 * 16);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t v = in[lane];
    const auto result = [&](std::size_t which) { return all[lane * 16 + which]; };
    EXPECT_EQ(result(0), 0x5555'5555U);
    EXPECT_EQ(result(1), std::accumulate(in.begin(), in.end(), 0U));
    EXPECT_EQ(result(2), 0x1111'1111U << (lane % 4));
    EXPECT_EQ(result(3), 1U);
    EXPECT_EQ(result(4), 1U);
    EXPECT_EQ(result(5), 0U);
    EXPECT_EQ(result(6), 16U);
    EXPECT_NE(result(7), 0U);
    const std::uint64_t bytes = (std::uint64_t{v * 3} << 32) | v;
    const auto byte = [&](int i) { return static_cast<std::uint32_t>(bytes >> (8 * i)) & 0xFFU; };
    EXPECT_EQ(result(8), byte(5) | byte(1) << 8 | byte(7) << 16 | byte(3) << 24);
    EXPECT_EQ(result(9), (v + 1) << 3 | v >> 29);
    const auto signed_byte = static_cast<std::int32_t>(static_cast<std::int8_t>(v & 0xFF));
    EXPECT_EQ(result(10), static_cast<std::uint32_t>(signed_byte * signed_byte + 3));
    EXPECT_EQ(result(11), (std::uint64_t{v * 77777777U} * (v * 99999999U)) >> 32);
    EXPECT_EQ(result(13), static_cast<std::uint32_t>(std::countr_zero(v)) + 1);
    EXPECT_EQ(result(14), in[lane % 8 < 3 ? lane : lane - 3]);
    EXPECT_EQ(result(15), in[lane / 16 * 16 + 5]);
  }
  EXPECT_EQ(all[12], 0xC000'0000U);
}

TEST_F(Kernels, SpinLocksWithinAWarpMakeProgress) {
  const std::uint64_t lock = gpu.allocate(4);
  const std::uint64_t counter = gpu.allocate(4);
  gpu.complete("spin_lock", {2}, {96}, lock, counter);
  EXPECT_EQ(gpu.download<int>(counter, 1)[0], 192);
}

TEST_F(Kernels, DynamicSharedMemoryAndVectors) {
  std::vector<float> x(64 * 4);
  std::iota(x.begin(), x.end(), 0.0F);
  const std::uint64_t dx = gpu.upload(x);
  Launch launch = gpu.prepare("reverse_dynamic", {1}, {64}, dx);
  launch.dynamic_shared_bytes = 64 * 16;
  TestGpu::expect_completed(run_launch(launch, gpu.memory, gpu.control));
  const auto results = gpu.download<float>(dx, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(results[i], x[(63 - i / 4) * 4 + i % 4]) << i;
}

TEST_F(Kernels, AsynchronousCopies) {
  std::vector<float> x(32 * 4);
  std::iota(x.begin(), x.end(), 0.0F);
  const std::uint64_t dy = gpu.allocate(x.size() * 4);
  gpu.complete("reverse_async", {1}, {32}, gpu.upload(x), dy);
  const auto results = gpu.download<float>(dy, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(results[i], x[(31 - i / 4) * 4 + i % 4]) << i;
}

TEST_F(Kernels, LoopsOfDifferentLengths) {
  const std::uint64_t out = gpu.allocate(200 * 4);
  gpu.complete("collatz", {2}, {100}, out);
  const auto results = gpu.download<std::uint32_t>(out, 200);
  for (std::uint64_t i = 0; i < results.size(); ++i) {
    std::uint32_t count = 0;
    for (std::uint64_t value = i + 1; value != 1; ++count) value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    EXPECT_EQ(results[i], count) << i;
  }
}

TEST_F(Kernels, AttributesOfKernels) {
  EXPECT_EQ(gpu.module->find_kernel("reduce")->static_shared_bytes(), 128U);
  EXPECT_EQ(gpu.module->find_kernel("matmul_f32")->static_shared_bytes(), 8192U);
  EXPECT_EQ(gpu.module->find_kernel("collatz")->static_shared_bytes(), 0U);
  EXPECT_GE(gpu.module->find_kernel("local_array")->local_bytes(), 64U);
  EXPECT_EQ(gpu.module->find_kernel("copy")->parameters().size(), 3U);
  EXPECT_EQ(gpu.module->find_kernel("copy")->max_threads_per_block(), 1024U);
  EXPECT_EQ(gpu.module->find_kernel("absent"), nullptr);
  EXPECT_EQ(gpu.module->find_variable("weights")->size_bytes, 16U);
  EXPECT_FALSE(gpu.module->find_variable("absent"));
}

}  // namespace
}  // namespace firebreak::softgpu
