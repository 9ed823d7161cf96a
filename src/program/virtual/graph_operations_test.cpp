// SPDX-License-Identifier: Apache-2.0
/// What a graph does, one by one: by contents as they are read from a driver.
#include "program/virtual/graph_operations.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "program/virtual/addresses.h"

namespace firebreak::virtual_driver {
namespace {

using abi::RedoCause;
using abi::RedoKind;
using testing::ElementsAre;
using testing::SizeIs;

constexpr std::uint64_t memory = window_begin;

class GraphOperationsTest : public testing::Test {
 protected:
  GraphOperationsTest() { code_.seen = 4711; }

  /// Each is known by its value, or by its grid.
  static GraphNodeContent fill(unsigned int value, std::vector<std::size_t> after = {}) {
    GraphNodeContent node = empty(CU_GRAPH_NODE_TYPE_MEMSET, std::move(after));
    node.fill = {memory, 0, value, 1, 16, 1};
    return node;
  }
  GraphNodeContent kernel(unsigned int grid, std::vector<std::size_t> after = {}) {
    GraphNodeContent node = empty(CU_GRAPH_NODE_TYPE_KERNEL, std::move(after));
    node.code = &code_;
    node.kernel.gridDimX = grid;
    node.kernel.gridDimY = 2;
    node.kernel.blockDimX = 32;
    node.kernel.sharedMemBytes = 64;
    node.arguments = {"abcdefgh"};
    node.in_one_piece = true;
    return node;
  }
  static GraphNodeContent empty(CUgraphNodeType type, std::vector<std::size_t> after = {}) {
    GraphNodeContent node;
    node.type = type;
    for (const std::size_t each : after) node.dependencies.push_back({each, {}});
    return node;
  }
  std::vector<GraphOperation> of(std::vector<GraphNodeContent> nodes) {
    GraphContent content;
    content.nodes = std::move(nodes);
    return operations_of(content, driver_, 1, arguments_);
  }
  std::vector<std::uint32_t> values_of(std::vector<GraphNodeContent> nodes) {
    std::vector<std::uint32_t> values;
    for (const GraphOperation& each : of(std::move(nodes))) values.push_back(each.body.fill.value);
    return values;
  }
  /// That it cannot be done again.
  void expect_refused(GraphNodeContent node, RedoCause cause = RedoCause::Unknown) {
    const auto operations = of({std::move(node)});
    ASSERT_THAT(operations, SizeIs(1));
    EXPECT_EQ(operations[0].kind, RedoKind::CannotRedo);
    EXPECT_EQ(operations[0].cause, cause);
  }
  GraphNodeContent with(CUkernelNodeAttrID id, const CUlaunchAttributeValue& value) {
    GraphNodeContent node = kernel(1);
    node.attributes.emplace_back(id, value);
    return node;
  }

  Object code_;
  cuda::Backend driver_{};
  ArgumentAddresses arguments_;
};

TEST_F(GraphOperationsTest, EachComesAfterAllThatItWaitsFor) {
  EXPECT_THAT(values_of({fill(1, {2}), fill(2, {0, 3}), fill(3), fill(4, {2})}), ElementsAre(3, 1, 4, 2));
}

TEST_F(GraphOperationsTest, WhatIsInAGraphOfTheGraphsIsInItsPlace) {
  auto child = std::make_shared<GraphContent>();
  child->nodes = {fill(5, {1}), fill(4)};
  GraphNodeContent node = empty(CU_GRAPH_NODE_TYPE_GRAPH, {0});
  node.child = child;
  EXPECT_THAT(values_of({fill(1), node, fill(7, {1})}), ElementsAre(1, 4, 5, 7));
}

TEST_F(GraphOperationsTest, WhatIsOffAndWhatDoesNothingIsNotThere) {
  GraphNodeContent off = fill(2, {0});
  off.is_enabled = false;
  EXPECT_THAT(values_of({fill(1), off, empty(CU_GRAPH_NODE_TYPE_EMPTY, {1}),
                         empty(CU_GRAPH_NODE_TYPE_EVENT_RECORD, {2}), fill(5, {3})}),
              ElementsAre(1, 5));
}

TEST_F(GraphOperationsTest, AKernelIsALaunch) {
  const auto operations = of({kernel(7)});
  ASSERT_THAT(operations, SizeIs(1));
  EXPECT_EQ(operations[0].kind, RedoKind::Launch);
  const abi::RedoLaunch& launch = operations[0].body.launch;
  EXPECT_EQ(launch.kernel, 4711U);
  EXPECT_THAT(launch.grid, ElementsAre(7, 2, 0));
  EXPECT_THAT(launch.block, ElementsAre(32, 0, 0));
  EXPECT_EQ(launch.shared_bytes, 64U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(operations[0].payload.data()), 8), "abcdefgh");
}

TEST_F(GraphOperationsTest, AnAttributeThatMattersCannotBeDoneAgain) {
  CUlaunchAttributeValue value{};
  EXPECT_EQ(of({with(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value)})[0].kind, RedoKind::Launch);
  value.cooperative = 1;
  expect_refused(with(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value));
  value = {};
  value.clusterDim.x = 2;
  expect_refused(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
  expect_refused(with(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, value));
  expect_refused(with(static_cast<CUkernelNodeAttrID>(99), {}));
}

TEST_F(GraphOperationsTest, WhatBeginsBeforeTheOneBeforeHasEndedCannotBeDoneAgain) {
  GraphNodeContent second = fill(2, {0});
  second.dependencies[0].data.type = 1;  // a programmatic one
  const auto operations = of({fill(1), second});
  ASSERT_THAT(operations, SizeIs(2));
  EXPECT_EQ(operations[1].kind, RedoKind::CannotRedo);
}

TEST_F(GraphOperationsTest, ACallOfTheHostCannotBeDoneAgain) {
  expect_refused(empty(CU_GRAPH_NODE_TYPE_HOST), RedoCause::HostCallback);
  expect_refused(empty(CU_GRAPH_NODE_TYPE_MEM_ALLOC));
}

TEST_F(GraphOperationsTest, AFillOfTheHostsMemoryCannotBeDoneAgain) {
  GraphNodeContent node = fill(1);
  node.fill.dst = 0x1000;
  expect_refused(node, RedoCause::HostMemory);
}

TEST_F(GraphOperationsTest, AFillHasRows) {
  GraphNodeContent node = empty(CU_GRAPH_NODE_TYPE_MEMSET);
  node.fill = {memory + 64, 512, 3, 4, 10, 5};
  const auto operations = of({node});
  ASSERT_THAT(operations, SizeIs(1));
  const abi::RedoFill& its = operations[0].body.fill;
  EXPECT_EQ(its.to.address, memory + 64);
  EXPECT_EQ(its.to.width_bytes, 40U);
  EXPECT_EQ(its.to.pitch_bytes, 512U);
  EXPECT_EQ(its.to.rows, 5U);
  EXPECT_EQ(its.value_bytes, 4U);
}

/// As cuda.h says where its elements lie: ((z * height + y) * pitch + x).
TEST_F(GraphOperationsTest, ACopyOfAVolumeIsASliceEach) {
  GraphNodeContent node = empty(CU_GRAPH_NODE_TYPE_MEMCPY);
  CUDA_MEMCPY3D& copy = node.copy;
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = reinterpret_cast<const void*>(0x10000);
  copy.srcPitch = 100;
  copy.srcHeight = 7;
  copy.srcXInBytes = 3;
  copy.srcY = 2;
  copy.srcZ = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = 64;
  copy.dstHeight = 5;
  copy.WidthInBytes = 20;
  copy.Height = 4;
  copy.Depth = 3;
  const auto operations = of({node});
  ASSERT_THAT(operations, SizeIs(3));
  for (std::size_t z = 0; z < 3; ++z) {
    const abi::RedoCopy& slice = operations[z].body.copy;
    EXPECT_EQ(slice.from.address, 0x10000U + ((1 + z) * 7 + 2) * 100 + 3);
    EXPECT_EQ(slice.to.address, memory + z * 5 * 64);
    EXPECT_EQ(slice.from.pitch_bytes, 100U);
    EXPECT_EQ(slice.to.pitch_bytes, 64U);
    EXPECT_EQ(slice.to.width_bytes, 20U);
    EXPECT_EQ(slice.to.rows, 4U);
  }
  copy.Depth = 100'000;
  expect_refused(node);
}

}  // namespace
}  // namespace firebreak::virtual_driver
