// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/stream.h"

#include <atomic>
#include <cstdint>

#include "program/cuda/event.h"
#include "program/cuda/pinned_buffer.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

/// Word 0 holds the stream, the others take what it writes.
class StreamOnDriver : public GpuTest {
 protected:
  std::atomic_ref<std::uint64_t> word(std::size_t index) {
    return std::atomic_ref(reinterpret_cast<std::uint64_t*>(words_.data())[index]);
  }
  CUdeviceptr address(std::size_t index) const {
    return words_.device_address() + index * sizeof(std::uint64_t);
  }

  cuda::PinnedBuffer words_ = must(cuda::PinnedBuffer::allocate(driver(), 64));
  cuda::Stream stream_ = must(cuda::Stream::create(driver()));
};

TEST_F(StreamOnDriver, IsIdleAtFirst) {
  EXPECT_TRUE(must(stream_.idle()));
  EXPECT_TRUE(stream_.synchronize());
}

TEST_F(StreamOnDriver, WaitsForAValueAndThenWritesOne) {
  must(stream_.wait_value(address(0), 1));
  must(stream_.write_value(address(1), 7));
  EXPECT_FALSE(must(stream_.idle()));
  EXPECT_EQ(word(1).load(), 0U);
  word(0).store(1);
  must(stream_.synchronize());
  EXPECT_EQ(word(1).load(), 7U);
}

TEST_F(StreamOnDriver, ValuesMayHave64Bits) {
  constexpr std::uint64_t wide = 0x1'0000'0000;
  must(stream_.wait_value64(address(0), wide, CU_STREAM_WAIT_VALUE_EQ));
  must(stream_.write_value64(address(1), wide + 1));
  EXPECT_FALSE(must(stream_.idle()));
  word(0).store(wide);
  must(stream_.synchronize());
  EXPECT_EQ(word(1).load(), wide + 1);
}

TEST_F(StreamOnDriver, EventIsDoneWhenWhatCameBeforeIs) {
  const auto event = must(cuda::Event::create(driver()));
  must(stream_.wait_value(address(0), 1));
  must(event.record(stream_.handle()));
  EXPECT_FALSE(must(event.done()));
  word(0).store(1);
  must(event.synchronize());
  EXPECT_TRUE(must(event.done()));
}

TEST_F(StreamOnDriver, EventHoldsAnotherStream) {
  const auto event = must(cuda::Event::create(driver()));
  const auto other = must(cuda::Stream::create(driver()));
  must(stream_.wait_value(address(0), 1));
  must(event.record(stream_.handle()));
  must(other.wait_for(event));
  must(other.write_value(address(1), 3));
  EXPECT_FALSE(must(other.idle()));
  EXPECT_EQ(word(1).load(), 0U);
  word(0).store(1);
  must(other.synchronize());
  EXPECT_EQ(word(1).load(), 3U);
}

TEST_F(StreamOnDriver, TwoTimedEventsGiveADuration) {
  const auto begin = must(cuda::Event::create(driver(), CU_EVENT_DEFAULT));
  const auto end = must(cuda::Event::create(driver(), CU_EVENT_DEFAULT));
  must(begin.record(stream_.handle()));
  must(end.record(stream_.handle()));
  must(end.synchronize());
  EXPECT_GE(must(end.elapsed_ms_since(begin)), 0.0F);
}

}  // namespace
}  // namespace firebreak::test
