// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/gpu_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>

#include "program/cuda/copy.h"
#include "program/cuda/small_context.h"

namespace firebreak::workloads::testing {
namespace {

std::filesystem::path state_folder() {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "firebreak-workloads-XXXXXX";
  std::string name = folder.string();
  return mkdtemp(name.data()) == nullptr ? std::filesystem::path() : std::filesystem::path(name);
}

/// Made before the driver is loaded, removed at the end of the program.
struct SoftGpuFolder {
  SoftGpuFolder() { setenv("FIREBREAK_SOFTGPU_DIR", path.c_str(), 1); }
  ~SoftGpuFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  SoftGpuFolder(const SoftGpuFolder&) = delete;
  SoftGpuFolder& operator=(const SoftGpuFolder&) = delete;
  std::filesystem::path path = state_folder();
};

void expect_ok(const Status& status) {
  if (!status) ADD_FAILURE() << to_string(status.error());
}

}  // namespace

void use_own_soft_gpu() { static const SoftGpuFolder folder; }

Gpu open_soft_gpu(std::string_view ptx) {
  use_own_soft_gpu();
  auto gpu = Gpu::open(ptx, FIREBREAK_SOFTGPU_LIBRARY);
  if (!gpu) {
    ADD_FAILURE() << to_string(gpu.error());
    std::abort();
  }
  return std::move(*gpu);
}

std::string output_of_one_that_moves(Workload& workload, const Gpu& from, std::string_view ptx) {
  const Gpu to = open_soft_gpu(ptx);
  expect_ok(workload.warm_up(to));
  expect_ok(from.context().make_current());
  const std::uint64_t half = workload.last_step() / 2;
  for (std::uint64_t step = 0; step < half; ++step) expect_ok(workload.queue_step(from, step));
  expect_ok(cuda::go_on_in(from.stream(), to.context(), to.stream()));
  expect_ok(workload.move_to(to));
  for (std::uint64_t step = half; step <= workload.last_step(); ++step)
    expect_ok(workload.queue_step(to, step));
  const auto output = workload.output(to);
  expect_ok(from.context().make_current());
  return output ? *output : to_string(output.error());
}

Result<CUdeviceptr> SharedMemory::allocate(const std::string& name, std::uint64_t size_bytes) {
  if (const auto known = regions_.find(name); known != regions_.end()) {
    EXPECT_EQ(known->second.size_bytes, size_bytes) << name;
    return known->second.address;
  }
  const auto address = memory_.allocate(name, size_bytes);
  if (address) regions_[name] = {*address, size_bytes};
  return address;
}

template <class T>
std::vector<T> download(const Gpu& gpu, const Region& region) {
  std::vector<T> values(region.size_bytes / sizeof(T));
  expect_ok(gpu.stream().synchronize());
  expect_ok(cuda::copy_to_host(gpu.driver(), std::as_writable_bytes(std::span(values)), region.address));
  return values;
}

template <class T>
void upload(const Gpu& gpu, const Region& region, const std::vector<T>& values) {
  expect_ok(gpu.stream().synchronize());
  expect_ok(cuda::copy_to_device(gpu.driver(), region.address, std::as_bytes(std::span(values))));
}

template std::vector<float> download(const Gpu&, const Region&);
template std::vector<std::uint16_t> download(const Gpu&, const Region&);
template std::vector<std::uint32_t> download(const Gpu&, const Region&);
template std::vector<std::uint64_t> download(const Gpu&, const Region&);
template void upload(const Gpu&, const Region&, const std::vector<float>&);
template void upload(const Gpu&, const Region&, const std::vector<std::uint16_t>&);
template void upload(const Gpu&, const Region&, const std::vector<std::uint8_t>&);
template void upload(const Gpu&, const Region&, const std::vector<std::uint64_t>&);

void scribble(const Gpu& gpu, const Region& region, std::mt19937_64& random, std::uint64_t begin_byte) {
  if (begin_byte >= region.size_bytes) return;
  std::vector<std::uint8_t> bytes(region.size_bytes - begin_byte);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  upload(gpu, {region.address + begin_byte, bytes.size()}, bytes);
}

}  // namespace firebreak::workloads::testing
