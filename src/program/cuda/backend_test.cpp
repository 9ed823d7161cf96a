// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/backend.h"

#include <gmock/gmock.h>

#include <cstring>
#include <set>
#include <string>

#include "shared/abi/cuda_api.h"

namespace firebreak::cuda {
namespace {

CUresult free_memory(CUdeviceptr pointer) { return pointer == 8 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

void* has_only_free(void*, const char* symbol) {
  return std::string(symbol) == "cuMemFree_v2" ? reinterpret_cast<void*>(&free_memory) : nullptr;
}

TEST(Backend, CallsWhatWasFound) {
  const Backend driver = Backend::from(nullptr, &has_only_free);
  EXPECT_TRUE(is_there(driver.cuMemFree_v2));
  EXPECT_EQ(driver.cuMemFree_v2(8), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuMemFree_v2(9), CUDA_ERROR_INVALID_VALUE);
}

TEST(Backend, WhatIsMissingAnswersThatItIs) {
  const Backend driver = Backend::from(nullptr, &has_only_free);
  EXPECT_FALSE(is_there(driver.cuMemFree));
  EXPECT_FALSE(is_there(driver.cuInit));
  EXPECT_EQ(driver.cuInit(0), CUDA_ERROR_NOT_FOUND);
}

std::set<std::string> asked;

void* remembers(void*, const char* symbol) {
  asked.emplace(symbol);
  return nullptr;
}

TEST(Backend, NoneIsNullAndAllOfTheTableAreAskedFor) {
  const Backend driver = Backend::from(nullptr, &remembers);
  void* pointers[sizeof(Backend) / sizeof(void*)];
  std::memcpy(pointers, &driver, sizeof(Backend));
  EXPECT_THAT(pointers, ::testing::Each(::testing::NotNull()));
  std::set<std::string> all;
  for (const abi::CudaFunction& function : abi::cuda_functions()) {
    all.emplace(function.symbol);
    if (!function.per_thread_symbol.empty()) all.emplace(function.per_thread_symbol);
  }
  EXPECT_EQ(asked, all);
  EXPECT_EQ(std::size(pointers), all.size());
}

}  // namespace
}  // namespace firebreak::cuda
