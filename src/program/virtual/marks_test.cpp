// SPDX-License-Identifier: Apache-2.0
// How far a stream has come, while several threads give it work.
#include "program/virtual/marks.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace firebreak::virtual_driver {
namespace {

/// A stream in which marks alone are put; the driver's functions have no other place for it.
struct Driver {
  std::vector<std::pair<CUdeviceptr, std::uint32_t>> put;
  std::function<void()> before_put;  ///< what another thread does while a mark is put
  CUcontext current = nullptr;
  CUcontext pinned_in = nullptr;
};
Driver* driver_of_test = nullptr;

CUresult get_current(CUcontext* context) {
  *context = driver_of_test->current;
  return CUDA_SUCCESS;
}
CUresult set_current(CUcontext context) {
  driver_of_test->current = context;
  return CUDA_SUCCESS;
}
CUresult pin(void*, std::size_t, unsigned int) {
  driver_of_test->pinned_in = driver_of_test->current;
  return CUDA_SUCCESS;
}
CUresult find_pinned(CUdeviceptr* address, void* host, unsigned int) {
  *address = reinterpret_cast<CUdeviceptr>(host);
  return CUDA_SUCCESS;
}
CUresult put_mark(CUstream, CUdeviceptr address, std::uint32_t value, unsigned int) {
  if (driver_of_test->before_put) driver_of_test->before_put();
  driver_of_test->put.emplace_back(address, value);
  return CUDA_SUCCESS;
}

class MarksTest : public testing::Test {
 protected:
  MarksTest() {
    driver_of_test = &driver;
    cuda::Backend functions{};
    functions.cuCtxGetCurrent = get_current;
    functions.cuCtxSetCurrent = set_current;
    functions.cuMemHostRegister_v2 = pin;
    functions.cuMemHostGetDevicePointer_v2 = find_pinned;
    functions.cuStreamWriteValue32_v2 = put_mark;
    instance = Instance::of(functions);
  }
  ~MarksTest() override { driver_of_test = nullptr; }

  /// As a call of the program's does.
  void give(std::uint32_t value) {
    work.queued.fetch_add(1);
    given.fill(work, one_row(0x1000, 4), value, 4);
  }
  void give_and_mark(std::uint32_t value) {
    work.givers.fetch_add(1);
    give(value);
    marks.maybe_put(*instance, work, nullptr, given);
    work.givers.fetch_sub(1);
  }
  /// The GPU comes to the mark that was put so-manieth.
  void come_to(std::size_t mark) {
    const auto& [address, value] = driver.put.at(mark);
    *reinterpret_cast<std::uint32_t*>(address) = value;
    marks.take_up(work);
  }
  /// Of all that has not ended: whether it may have begun.
  std::vector<bool> may_have_begun() {
    const std::vector<Work*> works{&work};
    std::vector<bool> all;
    const auto found = given.under_way(works);
    if (!found) return all;
    for (const auto& each : found->entries) all.push_back(each.may_have_begun);
    return all;
  }

  Driver driver;
  std::unique_ptr<Instance> instance;
  Receiver receiver{nullptr};
  WindowMemory memory{receiver};
  Marks marks{memory, Nanoseconds(0)};
  GivenWork given;
  Work work;
};

TEST_F(MarksTest, WhatLiesBeforeAMarkHasEndedAndWhatLiesBehindItHasNotBegun) {
  give_and_mark(1);
  give_and_mark(2);
  EXPECT_EQ(may_have_begun(), (std::vector<bool>{true, false}));
  come_to(0);
  EXPECT_EQ(work.ended.load(), 1U);
  EXPECT_EQ(may_have_begun(), (std::vector<bool>{true}));
  come_to(1);
  EXPECT_FALSE(work.is_under_way());
}

/// The caller's own may end before the instance does.
TEST_F(MarksTest, LieInThePrimaryContextAndTheCallersIsCurrentAfter) {
  const auto callers = reinterpret_cast<CUcontext>(&driver);
  driver.current = callers;
  driver.pinned_in = callers;
  give_and_mark(1);
  ASSERT_EQ(driver.put.size(), 1U);
  EXPECT_EQ(driver.pinned_in, instance->primary());
  EXPECT_NE(driver.pinned_in, callers);
  EXPECT_EQ(driver.current, callers);
}

/// The mark is behind it and does not count it: the GPU comes to that mark, and to what follows.
TEST_F(MarksTest, WhatAnotherThreadGivesWhileAMarkIsPutMakesItNoMark) {
  driver.before_put = [&] {
    work.givers.fetch_add(1);
    give(2);
    work.givers.fetch_sub(1);
  };
  give_and_mark(1);
  driver.before_put = nullptr;
  give(3);
  come_to(0);
  EXPECT_EQ(work.ended.load(), 1U);
  EXPECT_EQ(may_have_begun(), (std::vector<bool>{true, true}));
}

/// It may be before the mark, and is noted after it.
TEST_F(MarksTest, WhoIsGivingMeanwhileMakesItNoMark) {
  driver.before_put = [&] { work.givers.fetch_add(1); };
  give_and_mark(1);
  driver.before_put = nullptr;
  give(2);
  EXPECT_EQ(may_have_begun(), (std::vector<bool>{true, true}));
}

/// That is counted before it is given.
TEST_F(MarksTest, NoMarkIsPutWhileSomethingIsCountedFirst) {
  work.counted_first.fetch_add(1);
  give_and_mark(1);
  EXPECT_TRUE(driver.put.empty());
  work.counted_first.fetch_sub(1);
  give_and_mark(2);
  EXPECT_EQ(driver.put.size(), 1U);
}

}  // namespace
}  // namespace firebreak::virtual_driver
