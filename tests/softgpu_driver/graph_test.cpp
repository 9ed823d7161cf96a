// SPDX-License-Identifier: Apache-2.0
/// Graphs of the software GPU: what a capture records, what can be asked of it, and what is refused.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "ground/os/file.h"
#include "program/cuda/backend.h"
#include "shared/abi/cuda_driver_functions.h"
#include "shared/abi/cuda_graphs.h"
#include "tests/softgpu_driver/kernels.h"

namespace firebreak::test {
namespace {

using testing::SizeIs;

class GraphApi : public ::testing::Test {
 protected:
  GraphApi() {
    setenv("FIREBREAK_SOFTGPU_DIR", (directory_.path() + "/gpu").c_str(), 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", (directory_.path() + "/none").c_str(), 1);
    EXPECT_EQ(driver_.cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuCtxCreate_v2(&context_, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuModuleLoadData(&module_, kernels), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuModuleGetFunction(&add_one_, module_, "add_one"), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuEventCreate(&event_, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuEventCreate(&other_event_, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuMemAlloc_v2(&words_, 64), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuMemsetD32_v2(words_, 0, 16), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuCtxSynchronize(), CUDA_SUCCESS);
  }
  ~GraphApi() override { EXPECT_EQ(driver_.cuCtxDestroy_v2(context_), CUDA_SUCCESS); }

  CUresult begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    return driver_.cuStreamBeginCapture_v2(stream_, mode);
  }
  CUresult launch(CUstream on) {
    CUdeviceptr address = words_;
    void* parameters[] = {&address};
    return driver_.cuLaunchKernel(add_one_, 2, 1, 1, 3, 1, 1, 0, on, parameters, nullptr);
  }
  CUresult fork() {
    const CUresult recorded = driver_.cuEventRecord(event_, stream_);
    return recorded == CUDA_SUCCESS ? driver_.cuStreamWaitEvent(other_, event_, 0) : recorded;
  }
  CUresult join() {
    const CUresult recorded = driver_.cuEventRecord(other_event_, other_);
    return recorded == CUDA_SUCCESS ? driver_.cuStreamWaitEvent(stream_, other_event_, 0) : recorded;
  }
  std::vector<CUgraphNode> nodes_of(CUgraph graph) {
    std::size_t count = 0;
    EXPECT_EQ(driver_.cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
    std::vector<CUgraphNode> nodes(count);
    EXPECT_EQ(driver_.cuGraphGetNodes(graph, nodes.data(), &count), CUDA_SUCCESS);
    return nodes;
  }
  std::size_t dependencies_of(CUgraphNode node) {
    std::size_t count = 0;
    EXPECT_EQ(driver_.cuGraphNodeGetDependencies(node, nullptr, &count), CUDA_SUCCESS);
    return count;
  }
  std::uint32_t run(CUgraph graph) {
    CUgraphExec exec = nullptr;
    std::uint32_t word = 0;
    EXPECT_EQ(driver_.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuMemcpyDtoH_v2(&word, words_, sizeof word), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuGraphExecDestroy(exec), CUDA_SUCCESS);
    return word;
  }

  os::TemporaryDirectory directory_ = std::move(os::TemporaryDirectory::create().value());
  cuda::Backend driver_ =
      cuda::Backend::from(::dlopen(FIREBREAK_SOFTGPU_LIBRARY, RTLD_NOW),
                          [](void* library, const char* symbol) { return ::dlsym(library, symbol); });
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction add_one_ = nullptr;
  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
  CUevent event_ = nullptr;
  CUevent other_event_ = nullptr;
  CUdeviceptr words_ = 0;
  CUgraph graph_ = nullptr;
};

TEST_F(GraphApi, ACapturedKernelSaysWhatItIsGiven) {
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuStreamEndCapture(stream_, &graph_), CUDA_SUCCESS);
  const auto nodes = nodes_of(graph_);
  ASSERT_THAT(nodes, SizeIs(1));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  EXPECT_EQ(driver_.cuGraphNodeGetType(nodes[0], &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
  CUDA_KERNEL_NODE_PARAMS params{};
  ASSERT_EQ(driver_.cuGraphKernelNodeGetParams_v2(nodes[0], &params), CUDA_SUCCESS);
  EXPECT_EQ(params.func, add_one_);
  EXPECT_EQ(params.gridDimX, 2U);
  EXPECT_EQ(params.blockDimX, 3U);
  ASSERT_NE(params.kernelParams, nullptr);
  EXPECT_EQ(*static_cast<CUdeviceptr*>(params.kernelParams[0]), words_) << "a copy: the caller's is gone";
  CUDA_MEMCPY3D copy{};
  EXPECT_EQ(driver_.cuGraphMemcpyNodeGetParams(nodes[0], &copy), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(graph_), 6U);
  EXPECT_EQ(driver_.cuGraphDestroy(graph_), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuGraphNodeGetType(nodes[0], &type), CUDA_ERROR_INVALID_VALUE)
      << "it went with its graph";
}

TEST_F(GraphApi, StreamsThatForkAndJoinLeaveTheirDependencies) {
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(fork(), CUDA_SUCCESS);
  ASSERT_EQ(launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(launch(other_), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuEventQuery(event_), CUDA_ERROR_CAPTURED_EVENT);
  ASSERT_EQ(join(), CUDA_SUCCESS);
  ASSERT_EQ(launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuStreamEndCapture(stream_, &graph_), CUDA_SUCCESS);
  const auto nodes = nodes_of(graph_);
  ASSERT_THAT(nodes, SizeIs(4));
  EXPECT_EQ(dependencies_of(nodes[0]), 0U);
  EXPECT_EQ(dependencies_of(nodes[1]), 1U);
  EXPECT_EQ(dependencies_of(nodes[2]), 1U);
  EXPECT_EQ(dependencies_of(nodes[3]), 2U);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  EXPECT_EQ(driver_.cuStreamIsCapturing(other_, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE) << "it ended with the first one's";
}

TEST_F(GraphApi, WorkThatIsNotJoinedIsRefused) {
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(fork(), CUDA_SUCCESS);
  ASSERT_EQ(launch(other_), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuStreamEndCapture(stream_, &graph_), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

TEST_F(GraphApi, AForkedStreamDoesNotEndTheCapture) {
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(launch(stream_), CUDA_SUCCESS);
  ASSERT_EQ(fork(), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuStreamEndCapture(other_, &graph_), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(driver_.cuStreamEndCapture(stream_, &graph_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(GraphApi, HandlesThatAreNotItsOwnAreRefused) {
  ASSERT_EQ(driver_.cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
  CUgraphNode node = nullptr;
  CUdeviceptr address = words_;
  void* parameters[] = {&address};
  CUDA_KERNEL_NODE_PARAMS params{nullptr, 1, 1, 1, 1, 1, 1, 0, parameters, nullptr, nullptr, nullptr};
  int nobodys = 0;
  params.func = reinterpret_cast<CUfunction>(&nobodys);
  EXPECT_EQ(driver_.cuGraphAddKernelNode_v2(&node, graph_, nullptr, 0, &params), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(driver_.cuGraphAddEventWaitNode(&node, graph_, nullptr, 0, reinterpret_cast<CUevent>(&nobodys)),
            CUDA_ERROR_INVALID_HANDLE);
  const CUDA_MEMSET_NODE_PARAMS nowhere{0x1000, 0, 1, 4, 1, 1};
  EXPECT_EQ(driver_.cuGraphAddMemsetNode(&node, graph_, nullptr, 0, &nowhere, context_),
            CUDA_ERROR_INVALID_VALUE);
  const CUDA_MEMSET_NODE_PARAMS fill{words_, 0, 1, 4, 1, 1};
  EXPECT_EQ(driver_.cuGraphAddMemsetNode(&node, graph_, nullptr, 0, &fill, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  const auto unknown = reinterpret_cast<CUgraphNode>(&nobodys);
  EXPECT_EQ(driver_.cuGraphAddEmptyNode(&node, graph_, &unknown, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphApi, NodesRunAfterWhatTheyWaitForAndAnExecutableIsOfWhatWasThere) {
  ASSERT_EQ(driver_.cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
  CUgraphNode kernel = nullptr;
  CUgraphNode fill = nullptr;
  CUdeviceptr address = words_;
  void* parameters[] = {&address};
  const CUDA_KERNEL_NODE_PARAMS params{add_one_, 1, 1, 1, 1, 1, 1, 0, parameters, nullptr, nullptr, nullptr};
  const CUDA_MEMSET_NODE_PARAMS zero{words_, 0, 10, 4, 1, 1};
  ASSERT_EQ(driver_.cuGraphAddKernelNode_v2(&kernel, graph_, nullptr, 0, &params), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuGraphAddMemsetNode(&fill, graph_, nullptr, 0, &zero, context_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuGraphAddDependencies(graph_, &fill, &kernel, 1), CUDA_SUCCESS);
  EXPECT_EQ(run(graph_), 11U);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(driver_.cuGraphInstantiateWithFlags(&exec, graph_, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuGraphDestroyNode(fill), CUDA_SUCCESS);
  EXPECT_EQ(dependencies_of(kernel), 0U);
  EXPECT_EQ(run(graph_), 12U);
  ASSERT_EQ(driver_.cuGraphDestroy(graph_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  std::uint32_t word = 0;
  ASSERT_EQ(driver_.cuStreamSynchronize(stream_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuMemcpyDtoH_v2(&word, words_, sizeof word), CUDA_SUCCESS);
  EXPECT_EQ(word, 11U);
}

TEST_F(GraphApi, ANodeOfAnyTypeIsAsOneOfItsTypeAndStaysOfIt) {
  ASSERT_EQ(driver_.cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
  CUdeviceptr address = words_;
  void* parameters[] = {&address};
  CUgraphNodeParams fill{};
  fill.type = CU_GRAPH_NODE_TYPE_MEMSET;
  fill.memset = {words_, 0, 10, 4, 1, 1, context_};
  CUgraphNodeParams kernel{};
  kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
  kernel.kernel = {add_one_, 1, 1, 1, 1, 1, 1, 0, parameters, nullptr, nullptr, nullptr};
  CUgraphNode first = nullptr;
  CUgraphNode second = nullptr;
  ASSERT_EQ(driver_.cuGraphAddNode(&first, graph_, nullptr, 0, &fill), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuGraphAddNode_v2(&second, graph_, &first, nullptr, 1, &kernel), CUDA_SUCCESS);
  EXPECT_EQ(dependencies_of(second), 1U);
  EXPECT_EQ(run(graph_), 11U);
  fill.memset.value = 20;
  EXPECT_EQ(driver_.cuGraphNodeSetParams(first, &fill), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuGraphNodeSetParams(first, &kernel), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(graph_), 21U);
  int nobodys = 0;
  kernel.kernel.func = reinterpret_cast<CUfunction>(&nobodys);
  EXPECT_EQ(driver_.cuGraphAddNode(&second, graph_, nullptr, 0, &kernel), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(run(graph_), 21U);
}

TEST_F(GraphApi, ANodeThatIsOffIsNotRunAndHostFunctionsCannotBeOff) {
  ASSERT_EQ(driver_.cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
  const CUDA_MEMSET_NODE_PARAMS fill{words_, 0, 10, 4, 1, 1};
  const CUDA_HOST_NODE_PARAMS call{[](void*) {}, nullptr};
  CUgraphNode node = nullptr;
  CUgraphNode host = nullptr;
  ASSERT_EQ(driver_.cuGraphAddMemsetNode(&node, graph_, nullptr, 0, &fill, context_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuGraphAddHostNode(&host, graph_, nullptr, 0, &call), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(driver_.cuGraphInstantiateWithFlags(&exec, graph_, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuGraphNodeSetEnabled(exec, host, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver_.cuGraphNodeSetEnabled(exec, node, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuStreamSynchronize(stream_), CUDA_SUCCESS);
  std::uint32_t word = 1;
  ASSERT_EQ(driver_.cuMemcpyDtoH_v2(&word, words_, sizeof word), CUDA_SUCCESS);
  EXPECT_EQ(word, 0U);
}

TEST_F(GraphApi, ACircleIsNoGraphThatRuns) {
  ASSERT_EQ(driver_.cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
  CUgraphNode one = nullptr;
  CUgraphNode two = nullptr;
  ASSERT_EQ(driver_.cuGraphAddEmptyNode(&one, graph_, nullptr, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuGraphAddEmptyNode(&two, graph_, &one, 1), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuGraphAddDependencies(graph_, &two, &one, 1), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(driver_.cuGraphInstantiateWithFlags(&exec, graph_, 0), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace firebreak::test
