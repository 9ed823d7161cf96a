// SPDX-License-Identifier: Apache-2.0
/// Graphs are read from one driver and made in another: what the software GPU does not have.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "program/virtual/graph_content.h"

namespace firebreak::virtual_driver {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr Slot first = 1;
constexpr Slot second = 2;

template <class Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

/// Both drivers: a node is known by its address, whoever made it.
struct FakeNode {
  CUgraphNodeType type{};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::string argument;  ///< the first one, as it was when the node was made
  std::map<CUkernelNodeAttrID, CUlaunchAttributeValue> attributes;
  std::vector<std::pair<FakeNode*, CUgraphEdgeData>> dependencies;
  CUDA_MEMSET_NODE_PARAMS fill{};
};

struct Fake {
  std::deque<FakeNode> all;
  std::vector<FakeNode*> read;  ///< of the graph that is read
  std::vector<FakeNode*> made;
  int destroyed = 0;
  CUresult filling = CUDA_SUCCESS;
};
Fake fake;

FakeNode* node_of(CUgraphNode node) { return reinterpret_cast<FakeNode*>(node); }
CUgraphNode handle_of(FakeNode* node) { return reinterpret_cast<CUgraphNode>(node); }

CUresult get_nodes(CUgraph, CUgraphNode* into, std::size_t* count) {
  *count = fake.read.size();
  if (into != nullptr) std::ranges::transform(fake.read, into, handle_of);
  return CUDA_SUCCESS;
}
CUresult get_type(CUgraphNode node, CUgraphNodeType* type) {
  *type = node_of(node)->type;
  return CUDA_SUCCESS;
}
CUresult get_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  *params = node_of(node)->kernel;
  return CUDA_SUCCESS;
}
CUresult get_attribute(CUgraphNode node, CUkernelNodeAttrID attribute, CUlaunchAttributeValue* value) {
  const auto& all = node_of(node)->attributes;
  const auto found = all.find(attribute);
  *value = found == all.end() ? CUlaunchAttributeValue{} : found->second;
  return CUDA_SUCCESS;
}
CUresult set_attribute(CUgraphNode node, CUkernelNodeAttrID attribute, const CUlaunchAttributeValue* value) {
  node_of(node)->attributes[attribute] = *value;
  return CUDA_SUCCESS;
}
CUresult get_dependencies(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, std::size_t* count) {
  const auto& all = node_of(node)->dependencies;
  *count = all.size();
  for (std::size_t i = 0; nodes != nullptr && i < all.size(); ++i) {
    nodes[i] = handle_of(all[i].first);
    data[i] = all[i].second;
  }
  return CUDA_SUCCESS;
}
CUresult get_fill(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  *params = node_of(node)->fill;
  return CUDA_SUCCESS;
}
CUresult get_parameter(CUfunction, std::size_t index, std::size_t*, std::size_t* size_bytes) {
  *size_bytes = 8;
  return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult no_parameter(CUkernel, std::size_t, std::size_t*, std::size_t*) { return CUDA_ERROR_INVALID_VALUE; }

FakeNode& add(CUgraphNode* node, const CUgraphNode* after, std::size_t count) {
  FakeNode& made = fake.all.emplace_back();
  for (std::size_t i = 0; i < count; ++i)
    made.dependencies.emplace_back(node_of(after[i]), CUgraphEdgeData{});
  fake.made.push_back(&made);
  *node = handle_of(&made);
  return made;
}
CUresult add_kernel(CUgraphNode* node, CUgraph, const CUgraphNode* after, std::size_t count,
                    const CUDA_KERNEL_NODE_PARAMS* params) {
  FakeNode& made = add(node, after, count);
  made.kernel = *params;
  const void* const argument = params->extra != nullptr ? params->extra[1] : params->kernelParams[0];
  made.argument = std::string(static_cast<const char*>(argument), 8);
  return CUDA_SUCCESS;
}
CUresult add_fill(CUgraphNode* node, CUgraph, const CUgraphNode* after, std::size_t count,
                  const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  if (fake.filling == CUDA_SUCCESS) add(node, after, count).fill = *params;
  return fake.filling;
}
CUresult add_dependencies(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                          const CUgraphEdgeData* data, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    node_of(to[i])->dependencies.emplace_back(node_of(from[i]), data[i]);
  return CUDA_SUCCESS;
}

cuda::Backend fake_driver() {
  cuda::Backend driver{};
  driver.cuGraphGetNodes = &get_nodes;
  driver.cuGraphNodeGetType = &get_type;
  driver.cuGraphKernelNodeGetParams_v2 = &get_kernel;
  driver.cuGraphKernelNodeGetAttribute = &get_attribute;
  driver.cuGraphKernelNodeSetAttribute = &set_attribute;
  driver.cuGraphNodeGetDependencies_v2 = &get_dependencies;
  driver.cuGraphMemsetNodeGetParams = &get_fill;
  driver.cuFuncGetParamInfo = &get_parameter;
  driver.cuKernelGetParamInfo = &no_parameter;
  driver.cuGraphAddKernelNode_v2 = &add_kernel;
  driver.cuGraphAddMemsetNode = &add_fill;
  driver.cuGraphAddDependencies_v2 = &add_dependencies;
  driver.cuGraphAddDependencies = [](CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                     std::size_t count) {
    const std::vector<CUgraphEdgeData> plain(count);
    return add_dependencies(graph, from, to, plain.data(), count);
  };
  driver.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  driver.cuGraphCreate = [](CUgraph* graph, unsigned int) {
    *graph = handle<CUgraph>(0x77);
    return CUDA_SUCCESS;
  };
  driver.cuGraphDestroy = [](CUgraph) {
    ++fake.destroyed;
    return CUDA_SUCCESS;
  };
  driver.cuFuncGetModule = [](CUmodule* module, CUfunction) {
    *module = handle<CUmodule>(0x900);
    return CUDA_SUCCESS;
  };
  driver.cuFuncGetName = [](const char** name, CUfunction) {
    *name = "mix";
    return CUDA_SUCCESS;
  };
  return driver;
}

class GraphContentTest : public testing::Test {
 protected:
  GraphContentTest() {
    fake = {};
    // What a thread remembers of objects is of one Objects: no other test here has a context of that number.
    context_ = &known(Family::Context, 0x7100, 0x1000);
    function_ = &known(Family::Code, 0x200, 0x2000);
  }
  Object& known(Family family, std::uintptr_t in_first, std::uintptr_t in_second,
                Object::Origin origin = {}) {
    Object& made = objects_.add(family, in_first, first, {}, origin);
    objects_.set_own(made, second, in_second);
    return made;
  }
  /// One kernel that is given `word_`, after those.
  FakeNode& kernel(CUfunction function, std::vector<std::pair<FakeNode*, CUgraphEdgeData>> after = {}) {
    FakeNode& node = fake.all.emplace_back();
    node.kernel = {function, 1, 2, 3, 4, 5, 6, 7, parameters_.data(), nullptr, nullptr, nullptr};
    node.dependencies = std::move(after);
    fake.read.push_back(&node);
    return node;
  }
  GraphReading read() {
    return read_graph({driver_, first, objects_, taken_, arguments_, context_}, handle<CUgraph>(0x55));
  }
  CUresult make(const GraphContent& content) {
    Making making{driver_, second, objects_};
    return make_graph(content, making, taken_, made_);
  }
  void expect_not_read(const char* why) {
    const GraphReading reading = read();
    EXPECT_EQ(reading.content, nullptr);
    EXPECT_STREQ(reading.why, why);
  }

  cuda::Backend driver_ = fake_driver();
  Objects objects_;
  TakenVariables taken_;
  ArgumentAddresses arguments_;
  Object* context_ = nullptr;
  Object* function_ = nullptr;
  std::uint64_t word_ = 0x4711;
  std::array<void*, 1> parameters_{&word_};
  MadeGraph made_;
};

TEST_F(GraphContentTest, AKernelIsTheOtherInstancesWithTheSameArguments) {
  kernel(handle<CUfunction>(0x200));
  const GraphReading reading = read();
  ASSERT_NE(reading.content, nullptr);
  word_ = 0;  // what the driver has shown is gone
  ASSERT_EQ(make(*reading.content), CUDA_SUCCESS);
  ASSERT_THAT(fake.made, SizeIs(1));
  const FakeNode& made = *fake.made[0];
  EXPECT_EQ(made.kernel.func, handle<CUfunction>(0x2000));
  EXPECT_EQ(made.kernel.gridDimZ, 3U);
  EXPECT_EQ(made.kernel.sharedMemBytes, 7U);
  std::uint64_t argument = 0;
  std::memcpy(&argument, made.argument.data(), sizeof argument);
  EXPECT_EQ(argument, 0x4711U);
}

TEST_F(GraphContentTest, AKernelOfALibraryIsNoFunctionThereAndHasItsContext) {
  Object& library = known(Family::Library, 0x300, 0x3000);
  known(Family::Code, 0x400, 0x4000, {&library, 0});
  kernel(nullptr).kernel.kern = handle<CUkernel>(0x400);
  fake.read[0]->kernel.ctx = handle<CUcontext>(0x7100);
  const GraphReading reading = read();
  ASSERT_NE(reading.content, nullptr) << reading.why;
  ASSERT_EQ(make(*reading.content), CUDA_SUCCESS);
  EXPECT_EQ(fake.made[0]->kernel.func, nullptr);
  EXPECT_EQ(fake.made[0]->kernel.kern, handle<CUkernel>(0x4000));
  EXPECT_EQ(fake.made[0]->kernel.ctx, handle<CUcontext>(0x1000));
}

TEST_F(GraphContentTest, AFunctionThatNobodyWasGivenIsFoundByItsModuleAndName) {
  kernel(handle<CUfunction>(0x666));
  expect_not_read("it has a graph with a kernel that is not known");
  known(Family::Module, 0x900, 0x9000);
  const GraphReading reading = read();
  ASSERT_NE(reading.content, nullptr);
  driver_.cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char* name) {
    EXPECT_EQ(module, handle<CUmodule>(0x9000));
    EXPECT_STREQ(name, "mix");
    *function = handle<CUfunction>(0x6666);
    return CUDA_SUCCESS;
  };
  ASSERT_FALSE(objects_.make_all(driver_, second));
  ASSERT_EQ(make(*reading.content), CUDA_SUCCESS);
  EXPECT_EQ(fake.made[0]->kernel.func, handle<CUfunction>(0x6666));
}

TEST_F(GraphContentTest, DependenciesAreTheSameWithWhatTheySay) {
  constexpr CUgraphEdgeData programmatic{1, 0, 1, {}};
  FakeNode& one = kernel(handle<CUfunction>(0x200));
  FakeNode& two = kernel(handle<CUfunction>(0x200), {{&one, programmatic}});
  FakeNode& three = kernel(handle<CUfunction>(0x200), {{&two, {}}, {&one, {}}});
  one.dependencies = {};
  const GraphReading reading = read();
  ASSERT_NE(reading.content, nullptr);
  ASSERT_EQ(make(*reading.content), CUDA_SUCCESS);
  ASSERT_THAT(fake.made, SizeIs(3));
  ASSERT_THAT(fake.made[1]->dependencies, SizeIs(1));
  EXPECT_EQ(fake.made[1]->dependencies[0].first, fake.made[0]);
  EXPECT_EQ(fake.made[1]->dependencies[0].second.from_port, 1);
  ASSERT_THAT(fake.made[2]->dependencies, SizeIs(2));
  EXPECT_EQ(fake.made[2]->dependencies[0].first, fake.made[1]) << "in the same order: updates go by it";
  EXPECT_EQ(fake.made[2]->dependencies[1].first, fake.made[0]);
  EXPECT_EQ(reading.content->nodes[2].seen, number_of(handle_of(&three)));
}

TEST_F(GraphContentTest, ANodeThatWaitsForALaterOneWaitsForIt) {
  FakeNode& one = kernel(handle<CUfunction>(0x200));
  FakeNode& two = kernel(handle<CUfunction>(0x200));
  one.dependencies = {{&two, {}}};
  const GraphReading reading = read();
  ASSERT_NE(reading.content, nullptr);
  ASSERT_EQ(make(*reading.content), CUDA_SUCCESS);
  ASSERT_THAT(fake.made[0]->dependencies, SizeIs(1));
  EXPECT_EQ(fake.made[0]->dependencies[0].first, fake.made[1]);
}

TEST_F(GraphContentTest, AttributesThatAreNotAsInANewNodeAreSet) {
  CUlaunchAttributeValue cluster{};
  cluster.clusterDim = {2, 1, 1};
  kernel(handle<CUfunction>(0x200)).attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION] = cluster;
  const GraphReading reading = read();
  ASSERT_NE(reading.content, nullptr);
  ASSERT_EQ(make(*reading.content), CUDA_SUCCESS);
  ASSERT_THAT(fake.made[0]->attributes, SizeIs(1)) << "no other one was set";
  EXPECT_EQ(fake.made[0]->attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim.x, 2U);
}

TEST_F(GraphContentTest, WhatKernelsChangeThemselvesIsNotRead) {
  CUlaunchAttributeValue yes{};
  yes.cooperative = 1;
  kernel(handle<CUfunction>(0x200)).attributes[CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE] = yes;
  expect_not_read("it has a graph whose kernels signal events or change the graph");
}

TEST_F(GraphContentTest, NodesThatCannotBeMadeAgainAreNotRead) {
  const std::map<CUgraphNodeType, const char*> all{
      {CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, "it has a graph with semaphores"},
      {CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, "it has a graph with semaphores"},
      {CU_GRAPH_NODE_TYPE_MEM_ALLOC, "it has a graph that allocates memory"},
      {CU_GRAPH_NODE_TYPE_MEM_FREE, "it has a graph that allocates memory"},
      {CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, "it has a graph that waits for memory"},
      {CU_GRAPH_NODE_TYPE_CONDITIONAL, "it has a graph with conditions"},
      {static_cast<CUgraphNodeType>(99), "it has a graph with a node that is not known"}};
  for (const auto& [type, why] : all) {
    fake.read = {&fake.all.emplace_back()};
    fake.read[0]->type = type;
    expect_not_read(why);
  }
}

TEST_F(GraphContentTest, AKernelThatIsGivenTheAddressOfAVariableIsNotRead) {
  kernel(handle<CUfunction>(0x200));
  taken_.take(*function_, "a", 0x4710, 8, first);
  expect_not_read("it gives a kernel the address of a variable");
}

TEST_F(GraphContentTest, AVariableThatIsFilledLiesWhereTheInstanceHasIt) {
  FakeNode& node = fake.all.emplace_back();
  node.type = CU_GRAPH_NODE_TYPE_MEMSET;
  node.fill = {0x8004, 0, 1, 4, 1, 1};
  fake.read = {&node};
  taken_.take(*function_, "a", 0x4000, 8, 0);
  taken_.for_each([](TakenVariable& each) {
    each.in[first].store(0x8000);
    each.in[second].store(0x9000);
  });
  const GraphReading reading = read();
  ASSERT_NE(reading.content, nullptr);
  ASSERT_EQ(make(*reading.content), CUDA_SUCCESS);
  EXPECT_EQ(fake.made[0]->fill.dst, 0x9004U);
}

TEST_F(GraphContentTest, WithoutItsCodeOrItsMemoryItIsNotMade) {
  kernel(handle<CUfunction>(0x200));
  FakeNode& node = fake.all.emplace_back();
  node.type = CU_GRAPH_NODE_TYPE_MEMSET;
  fake.read.push_back(&node);
  const GraphReading reading = read();
  ASSERT_NE(reading.content, nullptr);
  fake.filling = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(make(*reading.content), graph_is_gone);
  EXPECT_EQ(fake.destroyed, 1) << "what there was of it";
  fake.filling = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(make(*reading.content), CUDA_ERROR_OUT_OF_MEMORY);
  fake.filling = CUDA_SUCCESS;
  objects_.remove(*function_);
  EXPECT_EQ(make(*reading.content), graph_is_gone);
}

}  // namespace
}  // namespace firebreak::virtual_driver
