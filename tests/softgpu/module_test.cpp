// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/module.h"

#include <array>
#include <cstdint>

#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/stream.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

/// out[thread] = base + scale * thread, and a variable with a first value.
constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 answer = 42;

.visible .entry ramp(.param .u64 out, .param .u32 base, .param .u32 scale)
{
  .reg .u64 %out, %offset;
  .reg .u32 %base, %scale, %thread, %block, %size;
  ld.param.u64 %out, [out];
  ld.param.u32 %base, [base];
  ld.param.u32 %scale, [scale];
  mov.u32 %thread, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mad.lo.u32 %thread, %block, %size, %thread;
  mul.wide.u32 %offset, %thread, 4;
  add.u64 %out, %out, %offset;
  mad.lo.u32 %base, %thread, %scale, %base;
  st.global.u32 [%out], %base;
  ret;
}
)";

class ModuleOnDriver : public GpuTest {
 protected:
  cuda::Module module_ = must(cuda::Module::load_ptx(driver(), ptx));
};

TEST_F(ModuleOnDriver, LaunchesAKernelWithTypedArguments) {
  const auto ramp = must(module_.function("ramp"));
  const auto stream = must(cuda::Stream::create(driver()));
  std::array<std::uint32_t, 96> words{};
  const auto buffer = must(cuda::DeviceBuffer::allocate(driver(), sizeof words));
  const cuda::LaunchShape shape{.grid = {.x = 3}, .block = {.x = 32}};
  must(ramp.launch(stream.handle(), shape, buffer.address(), std::uint32_t{100}, std::uint32_t{3}));
  must(stream.synchronize());
  must(cuda::copy_to_host(driver(), std::as_writable_bytes(std::span(words)), buffer.address()));
  for (std::uint32_t i = 0; i < words.size(); ++i) ASSERT_EQ(words[i], 100 + 3 * i) << i;
}

TEST_F(ModuleOnDriver, FindsAVariable) {
  const auto answer = must(module_.variable("answer"));
  ASSERT_EQ(answer.size_bytes, sizeof(std::uint32_t));
  std::uint32_t value = 0;
  must(cuda::copy_to_host(driver(), std::as_writable_bytes(std::span(&value, 1)), answer.address));
  EXPECT_EQ(value, 42U);
}

TEST_F(ModuleOnDriver, KernelHasAttributes) {
  const auto ramp = must(module_.function("ramp"));
  EXPECT_GE(must(ramp.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)), 32);
  EXPECT_EQ(must(ramp.attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)), 0);
}

TEST_F(ModuleOnDriver, AbsentNamesAreNotFound) {
  const auto function = module_.function("no_such_kernel");
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, ErrorCode::NotFound);
  EXPECT_THAT(function.error().message, ::testing::HasSubstr("no_such_kernel"));
  const auto variable = module_.variable("no_such_variable");
  ASSERT_FALSE(variable);
  EXPECT_EQ(variable.error().code, ErrorCode::NotFound);
}

TEST_F(ModuleOnDriver, WrongPtxSaysWhere) {
  constexpr std::string_view wrong = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry wrong()
{
  no.such.instruction;
}
)";
  const auto module = cuda::Module::load_ptx(driver(), wrong);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(module.error().message, ::testing::HasSubstr("CUDA_ERROR_INVALID_PTX"));
  // The compiler's log, of which every driver says at least the line.
  EXPECT_THAT(module.error().message, ::testing::HasSubstr("6"));
  EXPECT_THAT(module.error().message, ::testing::Not(::testing::HasSubstr("\n")));
}

}  // namespace
}  // namespace firebreak::test
