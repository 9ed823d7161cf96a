// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/context.h"

#include <thread>

#include "program/cuda/event.h"
#include "program/cuda/module.h"
#include "program/cuda/stream.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

using ContextOnDriver = GpuTest;

TEST_F(ContextOnDriver, IsCurrentOnceMadeAndGoneAtTheEnd) {
  EXPECT_EQ(must(cuda::ContextView::current(driver())).handle(), context().view().handle());
  end_context();
  const auto none = cuda::ContextView::current(driver());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::NotFound);
}

TEST_F(ContextOnDriver, AnotherThreadHasNoneUntilItTakesIt) {
  bool none_at_first = false;
  bool same_after = false;
  std::thread other([&] {
    none_at_first = !cuda::ContextView::current(driver());
    must(context()->make_current());
    same_after = must(cuda::ContextView::current(driver())).handle() == context().view().handle();
  });
  other.join();
  EXPECT_TRUE(none_at_first);
  EXPECT_TRUE(same_after);
}

TEST_F(ContextOnDriver, KnowsItsDevice) { EXPECT_EQ(must(context()->device()).handle(), device().handle()); }

TEST_F(ContextOnDriver, KeepsALimit) {
  must(context()->set_limit(CU_LIMIT_STACK_SIZE, 4096));
  EXPECT_EQ(must(context()->limit(CU_LIMIT_STACK_SIZE)), 4096U);
}

TEST_F(ContextOnDriver, PrimaryContextIsOneForAll) {
  const auto first = must(cuda::Context::retain_primary(device()));
  const auto second = must(cuda::Context::retain_primary(device()));
  EXPECT_EQ(first.view().handle(), second.view().handle());
  EXPECT_NE(first.view().handle(), context().view().handle());
  EXPECT_EQ(must(cuda::ContextView::current(driver())).handle(), first.view().handle());
  must(context()->make_current());
}

TEST_F(ContextOnDriver, EventsAndKernelsAreForStreamsOfTheirOwnContext) {
  const auto event = must(cuda::Event::create(driver()));
  const auto module = must(
      cuda::Module::load_ptx(driver(), ".version 7.0\n.target sm_70\n.visible .entry idle() { ret; }\n"));
  const auto idle = must(module.function("idle"));
  const auto stream = must(cuda::Stream::create(driver()));
  EXPECT_TRUE(event.record(stream.handle()));
  const auto other = must(cuda::Context::create(device()));
  const auto stream_of_other = must(cuda::Stream::create(driver()));
  EXPECT_FALSE(event.record(stream_of_other.handle()));
  EXPECT_FALSE(idle.launch(stream_of_other.handle(), {}));
  EXPECT_TRUE(stream_of_other.wait_for(event));
  EXPECT_TRUE(idle.launch(stream.handle(), {}));
  must(context()->make_current());
}

TEST_F(ContextOnDriver, SynchronizesWithNothingToDo) { EXPECT_TRUE(context()->synchronize()); }

}  // namespace
}  // namespace firebreak::test
