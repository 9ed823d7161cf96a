// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/driver.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "shared/abi/cuda_api.h"

namespace firebreak::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DriverLoad : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("FIREBREAK_CUDA_LIBRARY"); }
  void TearDown() override { unsetenv("FIREBREAK_CUDA_LIBRARY"); }
};

TEST_F(DriverLoad, MissingLibraryIsOneClearLineWithWhatToDo) {
  const auto driver = Driver::load("/nowhere/libcuda.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::NotFound);
  const std::string line = to_string(driver.error());
  EXPECT_THAT(line, HasSubstr("/nowhere/libcuda.so.1"));
  EXPECT_THAT(line, HasSubstr("FIREBREAK_CUDA_LIBRARY"));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
}

TEST_F(DriverLoad, EnvironmentNamesTheLibrary) {
  setenv("FIREBREAK_CUDA_LIBRARY", "/from/environment/libcuda.so.1", 1);
  const auto driver = Driver::load();
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, HasSubstr("/from/environment/libcuda.so.1"));
}

TEST_F(DriverLoad, ArgumentGoesBeforeEnvironment) {
  setenv("FIREBREAK_CUDA_LIBRARY", "/from/environment/libcuda.so.1", 1);
  const auto driver = Driver::load("/from/argument/libcuda.so.1");
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, HasSubstr("/from/argument/libcuda.so.1"));
}

TEST_F(DriverLoad, EmptyEnvironmentIsNoName) {
  setenv("FIREBREAK_CUDA_LIBRARY", "", 1);
  const auto driver = Driver::load();
  // These tests run with or without an NVIDIA driver on this machine.
  const std::string library = driver ? (*driver)->path() : driver.error().message;
  EXPECT_THAT(library, HasSubstr("libcuda.so.1"));
}

TEST_F(DriverLoad, SomeOtherLibraryIsNoDriver) {
  const auto driver = Driver::load("libc.so.6");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::Unsupported);
  EXPECT_THAT(driver.error().message, HasSubstr("cuGetProcAddress_v2"));
}

CUresult has_only_init(const char* symbol, void** function, int, std::uint64_t,
                       CUdriverProcAddressQueryResult* why) {
  static int anything = 0;
  const bool found = std::string_view(symbol) == "cuInit";
  *function = found ? &anything : nullptr;
  *why = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

TEST(EntryPoints, MissingOneIsNamed) {
  const auto table = resolve_entry_points(&has_only_init);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::Unsupported);
  EXPECT_THAT(table.error().message, HasSubstr("cuDriverGetVersion"));
}

int wanted_version = 0;

CUresult has_everything(const char*, void** function, int version, std::uint64_t,
                        CUdriverProcAddressQueryResult* why) {
  static int anything = 0;
  wanted_version = version;
  *function = &anything;
  *why = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

TEST(EntryPoints, AllAreFilledAndAskedForInOneVersion) {
  const auto table = resolve_entry_points(&has_everything);
  ASSERT_TRUE(table);
  EXPECT_EQ(wanted_version, 12000);
  // The table holds nothing but pointers: none may be null.
  void* pointers[sizeof(EntryPoints) / sizeof(void*)];
  std::memcpy(pointers, &*table, sizeof(EntryPoints));
  EXPECT_THAT(pointers, ::testing::Each(::testing::NotNull()));
}

TEST(FatalErrors, AreThoseThatEndTheProcessesUseOfTheGpu) {
  EXPECT_TRUE(is_fatal(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_TRUE(is_fatal(CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_TRUE(is_fatal(CUDA_ERROR_MPS_CLIENT_TERMINATED));
  EXPECT_FALSE(is_fatal(CUDA_SUCCESS));
  EXPECT_FALSE(is_fatal(CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_FALSE(is_fatal(CUDA_ERROR_NOT_READY));
}

void expect_answer(const char* name, const char* symbol) {
  const abi::CudaFunction* const found = abi::cuda_function_at(name, api_version);
  ASSERT_NE(found, nullptr) << name;
  EXPECT_EQ(found->symbol, symbol);
}

/// Otherwise a member's type would be another function's.
TEST(EntryPoints, AreWhatTheDriverAnswersAtTheirVersion) {
#define CUDA_NEEDED(name, symbol) expect_answer(#name, #symbol);
#include "program/cuda/needed.def"
#undef CUDA_NEEDED
}

}  // namespace
}  // namespace firebreak::cuda
