// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ground/os/memory.h"
#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/host_registration.h"
#include "program/cuda/pinned_buffer.h"
#include "program/cuda/stream.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

using Bytes = std::vector<std::byte>;

class MemoryOnDriver : public GpuTest {
 protected:
  Bytes read(CUdeviceptr from, std::size_t size_bytes) const {
    Bytes bytes(size_bytes);
    must(cuda::copy_to_host(driver(), bytes, from));
    return bytes;
  }
  static Bytes pattern(std::size_t size_bytes) {
    Bytes bytes(size_bytes);
    for (std::size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 3);
    return bytes;
  }
};

TEST_F(MemoryOnDriver, BufferKeepsWhatWasCopiedIn) {
  const auto buffer = must(cuda::DeviceBuffer::allocate(driver(), 1000));
  EXPECT_EQ(buffer.size_bytes(), 1000U);
  must(cuda::copy_to_device(driver(), buffer.address(), pattern(1000)));
  EXPECT_EQ(read(buffer.address(), 1000), pattern(1000));
}

TEST_F(MemoryOnDriver, QueuedCopiesAreInOrder) {
  const auto from = must(cuda::DeviceBuffer::allocate(driver(), 512));
  const auto to = must(cuda::DeviceBuffer::allocate(driver(), 512));
  const auto stream = must(cuda::Stream::create(driver()));
  const Bytes sent = pattern(512);
  Bytes received(512);
  must(cuda::copy_to_device(driver(), from.address(), sent, stream.handle()));
  must(cuda::copy_on_device(driver(), to.address(), from.address(), 512, stream.handle()));
  must(cuda::copy_to_host(driver(), received, to.address(), stream.handle()));
  must(stream.synchronize());
  EXPECT_EQ(received, sent);
}

TEST_F(MemoryOnDriver, CopyOnDeviceLeavesTheRestAlone) {
  const auto buffer = must(cuda::DeviceBuffer::allocate(driver(), 64));
  must(cuda::copy_to_device(driver(), buffer.address(), pattern(64)));
  must(cuda::copy_on_device(driver(), buffer.address() + 32, buffer.address(), 16));
  must(context()->synchronize());
  Bytes expected = pattern(64);
  std::copy_n(expected.begin(), 16, expected.begin() + 32);
  EXPECT_EQ(read(buffer.address(), 64), expected);
}

TEST_F(MemoryOnDriver, FillsBytesAndWords) {
  const auto buffer = must(cuda::DeviceBuffer::allocate(driver(), 16));
  const auto stream = must(cuda::Stream::create(driver()));
  must(cuda::fill_bytes(driver(), buffer.address(), 0xab, 16));
  must(cuda::fill_words(driver(), buffer.address() + 4, 0x04030201, 1));
  must(context()->synchronize());
  must(cuda::fill_bytes(driver(), buffer.address() + 8, 0x11, 2, stream.handle()));
  must(cuda::fill_words(driver(), buffer.address() + 12, 0xffffffff, 1, stream.handle()));
  must(stream.synchronize());
  const std::array<int, 16> expected{0xab, 0xab, 0xab, 0xab, 1,    2,    3,    4,
                                     0x11, 0x11, 0xab, 0xab, 0xff, 0xff, 0xff, 0xff};
  const Bytes bytes = read(buffer.address(), 16);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]) << i;
}

TEST_F(MemoryOnDriver, MoreThanThereIsRunsOut) {
  const auto buffer = cuda::DeviceBuffer::allocate(driver(), std::size_t{1} << 46);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, ErrorCode::ResourceExhausted);
}

TEST_F(MemoryOnDriver, FreedMemoryIsThereAgain) {
  const auto free_bytes = [this] {
    std::size_t free = 0;
    std::size_t total = 0;
    must(driver().check(driver()->cuMemGetInfo(&free, &total), "cuMemGetInfo"));
    return free;
  };
  const std::size_t before = free_bytes();
  auto buffer = std::optional(must(cuda::DeviceBuffer::allocate(driver(), std::size_t{256} << 20)));
  auto moved = std::optional(std::move(*buffer));
  EXPECT_LT(free_bytes(), before);
  buffer.reset();  // empty since the move: frees nothing
  EXPECT_LT(free_bytes(), before);
  moved.reset();
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(MemoryOnDriver, PinnedMemoryIsTheSameOnBothSides) {
  const auto pinned = must(cuda::PinnedBuffer::allocate(driver(), 4096));
  EXPECT_THAT(pinned.bytes(), ::testing::Each(std::byte{0}));
  must(cuda::fill_words(driver(), pinned.device_address() + 8, 0x55555555, 1));
  must(context()->synchronize());
  EXPECT_EQ(pinned.data()[8], std::byte{0x55});
  EXPECT_EQ(pinned.data()[12], std::byte{0});
}

TEST_F(MemoryOnDriver, RegisteredMemoryIsTheSameOnBothSides) {
  const auto memory = must(os::Mapping::anonymous(os::page_size()));
  const auto registration = must(cuda::HostRegistration::create(driver(), memory.bytes()));
  must(cuda::fill_words(driver(), registration.device_address() + 16, 0x66666666, 1));
  must(context()->synchronize());
  EXPECT_EQ(memory.bytes()[16], std::byte{0x66});
  EXPECT_EQ(memory.bytes()[20], std::byte{0});
}

TEST_F(MemoryOnDriver, MemoryCanBeRegisteredAgainOnceReleased) {
  const auto memory = must(os::Mapping::anonymous(os::page_size()));
  auto registration = std::optional(must(cuda::HostRegistration::create(driver(), memory.bytes())));
  EXPECT_FALSE(cuda::HostRegistration::create(driver(), memory.bytes()));
  registration.reset();
  EXPECT_TRUE(cuda::HostRegistration::create(driver(), memory.bytes()));
}

}  // namespace
}  // namespace firebreak::test
