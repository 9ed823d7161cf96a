// SPDX-License-Identifier: Apache-2.0
#include "shared/abi/cuda_api.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace firebreak::abi {
namespace {

using ::testing::IsEmpty;

const CudaParameter* parameter_of(const CudaFunction& function, std::string_view name) {
  const auto found = std::ranges::find(function.parameters, name, &CudaParameter::name);
  return found == function.parameters.end() ? nullptr : &*found;
}

TEST(CudaApi, EachSymbolStandsOnce) {
  std::set<std::string_view> symbols;
  for (const CudaFunction& function : cuda_functions()) {
    EXPECT_TRUE(symbols.insert(function.symbol).second) << function.symbol << " stands twice";
  }
}

TEST(CudaApi, NoNameHasTwoAnswersAtOneVersion) {
  std::set<std::pair<std::string_view, int>> answers;
  for (const CudaFunction& function : cuda_functions()) {
    EXPECT_GE(function.since, 2000) << function.symbol;
    EXPECT_TRUE(answers.insert({function.name, function.since}).second) << function.symbol;
  }
}

TEST(CudaApi, ASymbolIsItsNameWithAVersion) {
  for (const CudaFunction& function : cuda_functions()) {
    EXPECT_TRUE(function.symbol.starts_with(function.name)) << function.symbol;
    const std::string_view rest = function.symbol.substr(function.name.size());
    EXPECT_TRUE(rest.empty() || rest == "_v2" || rest == "_v3" || rest == "_v4") << function.symbol;
  }
}

TEST(CudaApi, AnArrayOfHandlesSaysWhichParameterIsItsLength) {
  for (const CudaFunction& function : cuda_functions()) {
    for (const CudaParameter& each : function.parameters) {
      const bool is_array = each.kind == CudaParameterKind::HandleArray ||
                            each.kind == CudaParameterKind::HandleArrayOut ||
                            each.kind == CudaParameterKind::DevicePointerArray;
      EXPECT_EQ(is_array, !each.length.empty()) << function.symbol << ", " << each.name;
      if (!is_array) continue;
      const CudaParameter* const length = parameter_of(function, each.length);
      ASSERT_NE(length, nullptr) << function.symbol << ", " << each.length;
      EXPECT_TRUE(length->kind == CudaParameterKind::Size || length->kind == CudaParameterKind::HostOut)
          << function.symbol << ", " << each.length;
    }
  }
}

/// Somebody who translates calls would pass such a parameter on as it is.
TEST(CudaApi, NoHandleIsTakenForANumber) {
  const std::set<std::string> handles = {"CUcontext",
                                         "CUmodule",
                                         "CUfunction",
                                         "CUkernel",
                                         "CUlibrary",
                                         "CUstream",
                                         "CUevent",
                                         "CUgraph",
                                         "CUgraphNode",
                                         "CUgraphExec",
                                         "CUarray",
                                         "CUmipmappedArray",
                                         "CUtexref",
                                         "CUsurfref",
                                         "CUmemoryPool",
                                         "CUgreenCtx",
                                         "CUexternalMemory",
                                         "CUexternalSemaphore",
                                         "CUlinkState",
                                         "CUuserObject",
                                         "CUgraphicsResource",
                                         "CUdevResourceDesc",
                                         "CUtexObject",
                                         "CUsurfObject",
                                         "CUmemGenericAllocationHandle"};
  const std::set<CudaParameterKind> kinds = {CudaParameterKind::Handle, CudaParameterKind::HandleOut,
                                             CudaParameterKind::HandleArray,
                                             CudaParameterKind::HandleArrayOut, CudaParameterKind::Stream};
  for (const CudaFunction& function : cuda_functions()) {
    for (const CudaParameter& each : function.parameters) {
      std::string bare(each.type);
      if (bare.starts_with("const ")) bare.erase(0, 6);
      bare.erase(std::remove(bare.begin(), bare.end(), '*'), bare.end());
      EXPECT_EQ(handles.contains(bare), kinds.contains(each.kind) && bare != "CUasyncCallbackHandle" &&
                                            bare != "CUlogsCallbackHandle" &&
                                            bare != "CUgraphConditionalHandle" && bare != "CUgraphDeviceNode")
          << function.symbol << ", " << each.type << " " << each.name;
    }
  }
}

TEST(CudaApi, TheNewestThatIsNotTooNewIsTheAnswer) {
  EXPECT_EQ(cuda_function_at("cuCtxCreate", 1999), nullptr);
  EXPECT_EQ(cuda_function_at("cuCtxCreate", 3019)->symbol, "cuCtxCreate");
  EXPECT_EQ(cuda_function_at("cuCtxCreate", 3020)->symbol, "cuCtxCreate_v2");
  EXPECT_EQ(cuda_function_at("cuCtxCreate", 11039)->symbol, "cuCtxCreate_v2");
  EXPECT_EQ(cuda_function_at("cuCtxCreate", 11040)->symbol, "cuCtxCreate_v3");
  EXPECT_EQ(cuda_function_at("cuCtxCreate", 12049)->symbol, "cuCtxCreate_v3");
  EXPECT_EQ(cuda_function_at("cuCtxCreate", 12050)->symbol, "cuCtxCreate_v4");
  EXPECT_EQ(cuda_function_at("cuCtxCreate", 99000)->symbol, "cuCtxCreate_v4");
  EXPECT_EQ(cuda_function_at("cuNothing", 13000), nullptr);
}

TEST(CudaApi, SymbolsAndNamesAreNotTheSame) {
  ASSERT_NE(cuda_function_of_symbol("cuMemAlloc_v2"), nullptr);
  EXPECT_EQ(cuda_function_at("cuMemAlloc_v2", 13000), nullptr);
  EXPECT_TRUE(is_cuda_function_name("cuMemAlloc"));
  EXPECT_FALSE(is_cuda_function_name("cuMemAlloc_v2"));
}

TEST(CudaApi, PerThreadSymbolsAreKnown) {
  EXPECT_EQ(cuda_function_of_symbol("cuMemcpyHtoD_v2")->per_thread_symbol, "cuMemcpyHtoD_v2_ptds");
  EXPECT_EQ(cuda_function_of_symbol("cuLaunchKernel")->per_thread_symbol, "cuLaunchKernel_ptsz");
  EXPECT_THAT(cuda_function_of_symbol("cuInit")->per_thread_symbol, IsEmpty());
}

}  // namespace
}  // namespace firebreak::abi
