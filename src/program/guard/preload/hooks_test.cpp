// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "program/guard/preload/ways.h"
#include "shared/guard_page/guard_view.h"

namespace firebreak::guard {
namespace {

using abi::CudaFunction;
using abi::CudaPurpose;

Way::Kind kind_of(std::string_view symbol) {
  const CudaFunction* const function = abi::cuda_function_of_symbol(symbol);
  return function == nullptr ? Way::Kind::none : way_of(*function).kind;
}

bool gives_work(const CudaFunction& function) {
  return function.purpose == CudaPurpose::Launches || function.purpose == CudaPurpose::Copies ||
         function.purpose == CudaPurpose::Fills || function.purpose == CudaPurpose::Enqueues;
}

TEST(Hooks, WhatGivesWorkOrMakesMemoryIsHookedOrHasAReasonNotToBe) {
  int hooked = 0;
  for (const CudaFunction& function : abi::cuda_functions()) {
    const Way& way = way_of(function);
    if (way.is_hooked()) ++hooked;
    if (!concerns_guard(function) || way.is_hooked()) continue;
    EXPECT_TRUE(way.kind == Way::Kind::left && !way.reason.empty())
        << function.symbol << ": needs a row in hooks.def";
  }
  EXPECT_GT(hooked, 100);
}

TEST(Hooks, WorkIsCountedWithoutAnybodyNamingIt) {
  int counted = 0;
  for (const CudaFunction& function : abi::cuda_functions()) {
    if (!gives_work(function)) continue;
    const Way& way = way_of(function);
    EXPECT_TRUE(way.is_hooked() || way.kind == Way::Kind::left) << function.symbol;
    if (way.kind == Way::Kind::counted) ++counted;
  }
  EXPECT_GT(counted, 90);
}

TEST(Hooks, RowsMeanTheFunctionThatTheyName) {
  EXPECT_EQ(kind_of("cuMemAlloc_v2"), Way::Kind::own);
  EXPECT_EQ(kind_of("cuMemMapArrayAsync"), Way::Kind::counted);
  EXPECT_EQ(kind_of("cuMemcpyBatchAsync_v2"), Way::Kind::counted);
  EXPECT_EQ(kind_of("cuEventRecord"), Way::Kind::left);
  EXPECT_EQ(kind_of("cuDeviceGetName"), Way::Kind::none);
}

TEST(Hooks, TheLedgersNamesAreTheTables) {
  constexpr auto last = static_cast<std::uint32_t>(abi::GuardFunction::MipmappedArrayCreate);
  for (std::uint32_t function = 1; function <= last; ++function) {
    const char* const name = to_string(static_cast<abi::GuardFunction>(function));
    EXPECT_TRUE(abi::is_cuda_function_name(name)) << name;
  }
}

}  // namespace
}  // namespace firebreak::guard
