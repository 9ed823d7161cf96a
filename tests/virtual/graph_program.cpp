// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual/graph_program.h"

#include <utility>

#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_graphs.h"

namespace firebreak::test {
namespace {

/// `mix` does with every word what cannot be done twice, or in another order, unnoticed.
constexpr const char* graph_code = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry mix(.param .u64 words, .param .u32 count, .param .u32 value)
{
  .reg .u64 %p;
  .reg .u32 %i, %x, %n, %v;
  .reg .pred %more;
  ld.param.u64 %p, [words];
  ld.param.u32 %n, [count];
  ld.param.u32 %v, [value];
  mov.u32 %i, 0;
again:
  ld.global.u32 %x, [%p];
  mad.lo.u32 %x, %x, 1664525, %v;
  add.u32 %x, %x, %i;
  st.global.u32 [%p], %x;
  add.u64 %p, %p, 4;
  add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, %n;
  @%more bra again;
  ret;
}

.visible .entry nothing()
{
  ret;
}
)";

constexpr std::uint32_t count = 64;
constexpr std::size_t size_bytes = count * sizeof(std::uint32_t);

/// The first error of several calls, one after the other.
template <class... Calls>
CUresult all(const Calls&... calls) {
  CUresult result = CUDA_SUCCESS;
  ((result = result == CUDA_SUCCESS ? calls() : result), ...);
  return result;
}

void count_run(void* runs) { static_cast<std::atomic<std::uint32_t>*>(runs)->fetch_add(1); }
void count_ten(void* runs) { static_cast<std::atomic<std::uint32_t>*>(runs)->fetch_add(10); }

/// What a kernel is given, for as long as it is asked for.
struct Arguments {
  CUdeviceptr words;
  std::uint32_t many = count;
  std::uint32_t value;
  std::array<void*, 3> pointers{&words, &many, &value};

  Arguments(CUdeviceptr to, std::uint32_t with) : words(to), value(with) {}
  CUDA_KERNEL_NODE_PARAMS params(CUfunction kernel) {
    return {kernel, 1, 1, 1, 1, 1, 1, 0, pointers.data(), nullptr, nullptr, nullptr};
  }
};

CUDA_MEMCPY3D between(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.WidthInBytes = size_bytes / 2;
  copy.Height = 1;
  copy.Depth = 1;
  return copy;
}

CUgraphNodeParams kernel_params(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel = kernel;
  return params;
}
CUgraphNodeParams copy_params(const CUDA_MEMCPY3D& copy, CUcontext context) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params.memcpy = {0, 0, context, copy};
  return params;
}
CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS& fill, CUcontext context) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset = {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height, context};
  return params;
}
CUgraphNodeParams host_params(CUhostFn function, void* data) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_HOST;
  params.host = {function, data};
  return params;
}
CUgraphNodeParams child_params(CUgraph child, CUgraphChildGraphNodeOwnership ownership) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph = {child, ownership};
  return params;
}
CUgraphNodeParams event_params(CUgraphNodeType type, CUevent event) {
  CUgraphNodeParams params{};
  params.type = type;
  if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) params.eventRecord.event = event;
  if (type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) params.eventWait.event = event;
  return params;
}

}  // namespace

CUresult GraphProgram::prepare() {
  if (stream_ != nullptr) return CUDA_SUCCESS;
  void* host = nullptr;
  const CUresult result =
      all([&] { return driver_.cuCtxGetCurrent(&context_); },
          [&] { return driver_.cuModuleLoadData(&module_, graph_code); },
          [&] { return driver_.cuModuleGetFunction(&mix_, module_, "mix"); },
          [&] { return driver_.cuModuleGetFunction(&nothing_, module_, "nothing"); },
          [&] { return driver_.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, -1); },
          [&] { return driver_.cuStreamCreate(&other_stream_, CU_STREAM_NON_BLOCKING); },
          [&] { return driver_.cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING); },
          [&] { return driver_.cuEventCreate(&other_event_, CU_EVENT_DISABLE_TIMING); },
          [&] { return driver_.cuEventCreate(&timed_[0], CU_EVENT_DEFAULT); },
          [&] { return driver_.cuEventCreate(&timed_[1], CU_EVENT_DEFAULT); },
          [&] { return driver_.cuMemAlloc_v2(&words_, size_bytes); },
          [&] { return driver_.cuMemAlloc_v2(&other_words_, size_bytes); },
          [&] { return driver_.cuMemHostAlloc(&host, size_bytes, 0); },
          [&] { return driver_.cuMemsetD32_v2(words_, 1, count); },
          [&] { return driver_.cuMemsetD32_v2(other_words_, 2, count); },
          [&] { return driver_.cuCtxSynchronize(); });
  pinned_ = static_cast<std::uint32_t*>(host);
  for (std::uint32_t i = 0; result == CUDA_SUCCESS && i < count; ++i) pinned_[i] = i;
  return result;
}

CUresult GraphProgram::make(const std::string& kind) {
  kind_ = kind;
  return all([&] { return prepare(); }, [&] { return destroy(); }, [&] { return fill_graph(kind); },
             [&] { return instantiate(kind); });
}

CUresult GraphProgram::fill_graph(const std::string& kind) {
  const bool is_built = kind == "built" || kind == "child" || kind == "kept";
  if (kind == "any_type" || kind == "gives_away") {
    return all([&] { return driver_.cuGraphCreate(&graph_, 0); },
               [&] { return build_any_type(kind == "gives_away"); });
  }
  if (kind == "into") {
    return all([&] { return driver_.cuGraphCreate(&graph_, 0); }, [&] { return capture_into_graph(3); },
               [&] { return capture_into_graph(4); });
  }
  if (!is_built) {
    return all([&] { return driver_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL); },
               [&] { return capture(kind); }, [&] { return driver_.cuStreamEndCapture(stream_, &graph_); });
  }
  return all([&] { return driver_.cuGraphCreate(&graph_, 0); },
             [&] { return build(graph_, 5, kind == "child"); });
}

/// After all that is in it already.
CUresult GraphProgram::capture_into_graph(std::uint32_t value) {
  std::array<CUgraphNode, 16> nodes{};
  std::size_t node_count = nodes.size();
  CUgraph ended = nullptr;
  return all([&] { return driver_.cuGraphGetNodes(graph_, nodes.data(), &node_count); },
             [&] {
               return driver_.cuStreamBeginCaptureToGraph(stream_, graph_, nodes.data(), nullptr, node_count,
                                                          CU_STREAM_CAPTURE_MODE_GLOBAL);
             },
             [&] { return capture_mix(words_, value, stream_); },
             [&] { return driver_.cuStreamEndCapture(stream_, &ended); },
             [&] { return ended == graph_ ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}

CUresult GraphProgram::instantiate(const std::string& kind) {
  CUresult result = CUDA_SUCCESS;
  if (kind == "with_params") {
    CUDA_GRAPH_INSTANTIATE_PARAMS params{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, stream_, nullptr, {}};
    result = driver_.cuGraphInstantiateWithParams(&exec_, graph_, &params);
  } else {
    result =
        driver_.cuGraphInstantiateWithFlags(&exec_, graph_, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  }
  if (result != CUDA_SUCCESS || kind == "kept" || kind == "any_type") return result;
  if (kind == "clone") {
    CUgraph clone = nullptr;
    return all([&] { return driver_.cuGraphClone(&clone, graph_); },
               [&] { return driver_.cuGraphExecDestroy(exec_); },
               [&] { return driver_.cuGraphDestroy(graph_); },
               [&] { return driver_.cuGraphInstantiateWithFlags(&exec_, clone, 0); },
               [&] {
                 graph_ = nullptr;
                 return driver_.cuGraphDestroy(clone);
               });
  }
  return driver_.cuGraphDestroy(std::exchange(graph_, nullptr));
}

CUresult GraphProgram::capture(const std::string& kind) {
  const auto mix = [&] { return capture_mix(words_, 3, stream_); };
  if (kind == "one_piece") return capture_in_one_piece();
  if (kind == "attributes") return capture_with_attributes();
  if (kind == "copies") return all(mix, [&] { return capture_copies(); });
  if (kind == "fill") {
    return all(
        mix, [&] { return driver_.cuMemsetD16Async(words_ + 8, 0x1234, 20, stream_); },
        [&] { return driver_.cuMemsetD2D8Async(words_ + 64, 32, 7, 8, 3, stream_); }, mix);
  }
  if (kind == "host") {
    return all(mix, [&] { return driver_.cuLaunchHostFunc(stream_, &count_run, &host_runs_); });
  }
  if (kind == "fork") return capture_fork();
  if (kind == "events") return capture_events();
  if (kind == "allocates") {
    CUdeviceptr memory = 0;
    return all(mix, [&] { return driver_.cuMemAllocAsync(&memory, size_bytes, stream_); });
  }
  if (kind == "waits") {
    return all(mix, [&] { return driver_.cuStreamWriteValue32_v2(stream_, words_, 9, 0); });
  }
  return all(mix, mix);
}

CUresult GraphProgram::capture_mix(CUdeviceptr words, std::uint32_t value, CUstream stream) {
  Arguments arguments(words, value);
  return driver_.cuLaunchKernel(mix_, 1, 1, 1, 1, 1, 1, 0, stream, arguments.pointers.data(), nullptr);
}

CUresult GraphProgram::capture_in_one_piece() {
  struct {
    CUdeviceptr words;
    std::uint32_t many;
    std::uint32_t value;
  } packed{words_, count, 77};
  std::size_t packed_bytes = sizeof packed;
  std::array<void*, 5> extra{reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &packed_bytes,
                             reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT), &packed,
                             reinterpret_cast<void*>(CU_LAUNCH_PARAM_END_AS_INT)};
  return all(
      [&] { return driver_.cuLaunchKernel(mix_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, extra.data()); },
      [&] { return driver_.cuLaunchKernel(nothing_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr); });
}

CUresult GraphProgram::capture_with_attributes() {
  Arguments arguments(words_, 11);
  CUlaunchAttribute priority{};
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  priority.value.priority = -3;
  const CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, stream_, &priority, 1};
  return all([&] { return driver_.cuLaunchKernelEx(&config, mix_, arguments.pointers.data(), nullptr); },
             [&] {
               return driver_.cuLaunchCooperativeKernel(mix_, 1, 1, 1, 1, 1, 1, 0, stream_,
                                                        arguments.pointers.data());
             });
}

CUresult GraphProgram::capture_copies() {
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = words_;
  rows.srcPitch = 32;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = other_words_;
  rows.dstPitch = 64;
  rows.WidthInBytes = 16;
  rows.Height = 3;
  return all([&] { return driver_.cuMemcpyHtoDAsync_v2(words_ + 128, pinned_, 32, stream_); },
             [&] { return driver_.cuMemcpyDtoDAsync_v2(other_words_, words_, size_bytes / 2, stream_); },
             [&] { return driver_.cuMemcpyAsync(other_words_ + 192, words_ + 4, 12, stream_); },
             [&] { return driver_.cuMemcpy2DAsync_v2(&rows, stream_); },
             [&] { return driver_.cuMemcpyDtoHAsync_v2(pinned_, words_, 64, stream_); });
}

/// Two streams; what is after both has to wait for both.
CUresult GraphProgram::capture_fork() {
  return all([&] { return capture_mix(words_, 3, stream_); },
             [&] { return driver_.cuEventRecord(event_, stream_); },
             [&] { return driver_.cuStreamWaitEvent(other_stream_, event_, 0); },
             [&] { return driver_.cuMemcpyDtoDAsync_v2(other_words_, words_, size_bytes, other_stream_); },
             [&] { return capture_mix(other_words_, 4, other_stream_); },
             [&] { return driver_.cuEventRecord(other_event_, other_stream_); },
             [&] { return driver_.cuStreamWaitEvent(stream_, other_event_, 0); },
             [&] { return driver_.cuMemcpyDtoDAsync_v2(words_, other_words_, size_bytes, stream_); },
             [&] { return capture_mix(words_, 5, stream_); });
}

/// It waits for what another stream does with pinned memory, and says when it began and ended.
CUresult GraphProgram::capture_events() {
  return all([&] { return driver_.cuStreamWaitEvent(stream_, other_event_, CU_EVENT_WAIT_EXTERNAL); },
             [&] { return driver_.cuEventRecordWithFlags(timed_[0], stream_, CU_EVENT_RECORD_EXTERNAL); },
             [&] { return driver_.cuMemcpyHtoDAsync_v2(words_, pinned_, 4, stream_); },
             [&] { return capture_mix(words_, 3, stream_); },
             [&] { return driver_.cuEventRecordWithFlags(timed_[1], stream_, CU_EVENT_RECORD_EXTERNAL); });
}

/// By calls for each node, the last ones first: what a node waits for is said afterwards.
CUresult GraphProgram::build(CUgraph graph, std::uint32_t value, bool with_child) {
  Arguments arguments(words_, value);
  const CUDA_KERNEL_NODE_PARAMS kernel = arguments.params(mix_);
  const CUDA_MEMCPY3D copy = between(other_words_, words_);
  const CUDA_MEMSET_NODE_PARAMS fill{words_ + 16, 0, value, 4, 4, 1};
  const CUDA_HOST_NODE_PARAMS call{&count_run, &host_runs_};
  CUgraphNode empty = nullptr;
  CUgraphNode host = nullptr;
  return all([&] { return driver_.cuGraphAddMemcpyNode(&copy_node_, graph, nullptr, 0, &copy, context_); },
             [&] { return driver_.cuGraphAddKernelNode_v2(&kernel_node_, graph, nullptr, 0, &kernel); },
             [&] { return driver_.cuGraphAddMemsetNode(&fill_node_, graph, nullptr, 0, &fill, context_); },
             [&] { return driver_.cuGraphAddEmptyNode(&empty, graph, &fill_node_, 1); },
             [&] { return driver_.cuGraphAddDependencies(graph, &empty, &kernel_node_, 1); },
             [&] { return driver_.cuGraphAddDependencies(graph, &kernel_node_, &copy_node_, 1); },
             [&] { return driver_.cuGraphAddHostNode(&host, graph, &copy_node_, 1, &call); },
             [&] { return with_child ? build_child(host) : CUDA_SUCCESS; });
}

CUresult GraphProgram::build_child(CUgraphNode after) {
  const CUgraphNode kernel = kernel_node_;
  CUgraph child = nullptr;
  CUgraphNode node = nullptr;
  return all([&] { return driver_.cuGraphCreate(&child, 0); }, [&] { return build(child, 8, false); },
             [&] { return driver_.cuGraphAddChildGraphNode(&node, graph_, &after, 1, child); },
             [&] {
               kernel_node_ = kernel;
               return driver_.cuGraphDestroy(child);
             });
}

/// One after the other, each by the function for nodes of any type.
CUresult GraphProgram::build_any_type(bool gives_child_away) {
  Arguments arguments(words_, 21);
  CUgraph child = nullptr;
  CUgraphNode last = nullptr;
  const auto add = [&](CUgraphNodeParams params) {
    CUgraphNode after = last;
    return driver_.cuGraphAddNode_v2(&last, graph_, after == nullptr ? nullptr : &after, nullptr,
                                     after == nullptr ? 0 : 1, &params);
  };
  const auto ownership =
      gives_child_away ? CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE : CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
  CUgraphNodeParams empty{};
  empty.type = CU_GRAPH_NODE_TYPE_EMPTY;
  return all([&] { return driver_.cuGraphCreate(&child, 0); }, [&] { return build(child, 6, false); },
             [&] { return add(kernel_params(arguments.params(mix_))); },
             [&] {
               kernel_node_ = last;
               return add(copy_params(between(other_words_, words_), context_));
             },
             [&] {
               copy_node_ = last;
               return add(fill_params({words_ + 16, 0, 5, 4, 4, 1}, context_));
             },
             [&] {
               fill_node_ = last;
               return add(empty);
             },
             [&] { return add(child_params(child, ownership)); },
             [&] {
               child_node_ = last;
               return gives_child_away ? CUDA_SUCCESS : driver_.cuGraphDestroy(child);
             },
             [&] { return add(event_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_)); },
             [&] {
               wait_node_ = last;
               return add(event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, timed_[1]));
             },
             [&] {
               record_node_ = last;
               return add(host_params(&count_run, &host_runs_));
             },
             [&] {
               host_node_ = last;
               return CUDA_SUCCESS;
             });
}

CUresult GraphProgram::begin() {
  return all([&] { return prepare(); }, [&] { return destroy(); },
             [&] { return driver_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED); },
             [&] { return capture_mix(words_, 3, stream_); });
}

CUresult GraphProgram::end() {
  return all([&] { return capture_mix(words_, 4, stream_); },
             [&] { return driver_.cuStreamEndCapture(stream_, &graph_); }, [&] { return instantiate(""); });
}

CUresult GraphProgram::set_kernel(std::uint32_t value) {
  Arguments arguments(other_words_, value);
  const CUDA_KERNEL_NODE_PARAMS kernel = arguments.params(mix_);
  return driver_.cuGraphExecKernelNodeSetParams_v2(exec_, kernel_node_, &kernel);
}

CUresult GraphProgram::change(const std::string& how) {
  if (how == "kernel") return set_kernel(1000);
  if (how == "kernel_again") return set_kernel(2000);
  if (how == "copy") {
    const CUDA_MEMCPY3D copy = between(other_words_ + 8, words_ + 4);
    return driver_.cuGraphExecMemcpyNodeSetParams(exec_, copy_node_, &copy, context_);
  }
  if (how == "fill") {
    const CUDA_MEMSET_NODE_PARAMS fill{words_ + 20, 0, 99, 2, 6, 1};
    return driver_.cuGraphExecMemsetNodeSetParams(exec_, fill_node_, &fill, context_);
  }
  if (how == "off" || how == "on")
    return driver_.cuGraphNodeSetEnabled(exec_, kernel_node_, how == "on" ? 1 : 0);
  if (how == "off_and_gone") return turn_off_what_is_gone();
  if (how == "other_order") return update_in_order();
  if (how == "host") {
    const CUDA_HOST_NODE_PARAMS call{&count_ten, &host_runs_};
    return driver_.cuGraphExecHostNodeSetParams(exec_, host_node_, &call);
  }
  if (how == "child") {
    const auto nodes = std::array{kernel_node_, copy_node_, fill_node_};
    CUgraph child = nullptr;
    return all([&] { return driver_.cuGraphCreate(&child, 0); }, [&] { return build(child, 66, false); },
               [&] { return driver_.cuGraphExecChildGraphNodeSetParams(exec_, child_node_, child); },
               [&] {
                 kernel_node_ = nodes[0];
                 copy_node_ = nodes[1];
                 fill_node_ = nodes[2];
                 return driver_.cuGraphDestroy(child);
               });
  }
  if (how == "events") {
    return all([&] { return driver_.cuGraphExecEventWaitNodeSetEvent(exec_, wait_node_, other_event_); },
               [&] { return driver_.cuGraphExecEventRecordNodeSetEvent(exec_, record_node_, timed_[0]); });
  }
  if (how == "any_type") return change_any_type();
  if (how == "same_graph") {
    CUgraphExecUpdateResultInfo info{};
    return driver_.cuGraphExecUpdate_v2(exec_, graph_, &info);
  }
  if (how == "graph_any_type") {
    Arguments arguments(words_, 58);
    auto kernel = kernel_params(arguments.params(mix_));
    CUgraphNode added = nullptr;
    return all([&] { return driver_.cuGraphNodeSetParams(kernel_node_, &kernel); },
               [&] { return driver_.cuGraphAddNode_v2(&added, graph_, &host_node_, nullptr, 1, &kernel); });
  }
  if (how == "graph") {  // the kept one: another node, and other parameters of the kernel
    CUgraphNode added = nullptr;
    Arguments arguments(words_, 31);
    const CUDA_KERNEL_NODE_PARAMS kernel = arguments.params(mix_);
    return all([&] { return driver_.cuGraphKernelNodeSetParams_v2(kernel_node_, &kernel); },
               [&] { return driver_.cuGraphAddKernelNode_v2(&added, graph_, &copy_node_, 1, &kernel); });
  }
  if (how != "update") return CUDA_ERROR_INVALID_VALUE;
  CUgraph other = nullptr;
  CUgraphExecUpdateResultInfo info{};
  return all([&] { return driver_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED); },
             [&] { return capture_mix(other_words_, 41, stream_); },
             [&] { return capture_mix(words_, 42, stream_); },
             [&] { return driver_.cuStreamEndCapture(stream_, &other); },
             [&] { return driver_.cuGraphExecUpdate_v2(exec_, other, &info); },
             [&] { return driver_.cuGraphDestroy(other); });
}

CUresult GraphProgram::turn_off_what_is_gone() {
  CUmodule module = nullptr;
  CUfunction mix = nullptr;
  Arguments arguments(words_, 13);
  return all([&] { return driver_.cuModuleLoadData(&module, graph_code); },
             [&] { return driver_.cuModuleGetFunction(&mix, module, "mix"); },
             [&] {
               const CUDA_KERNEL_NODE_PARAMS kernel = arguments.params(mix);
               return driver_.cuGraphExecKernelNodeSetParams_v2(exec_, kernel_node_, &kernel);
             },
             [&] { return driver_.cuGraphNodeSetEnabled(exec_, kernel_node_, 0); },
             [&] { return driver_.cuModuleUnload(module); });
}

/// As build() does it, but each node after those that it waits for.
CUresult GraphProgram::update_in_order() {
  Arguments arguments(words_, 5);
  const CUDA_KERNEL_NODE_PARAMS kernel = arguments.params(mix_);
  const CUDA_MEMCPY3D copy = between(other_words_, words_);
  const CUDA_MEMSET_NODE_PARAMS fill{words_ + 16, 0, 5, 4, 4, 1};
  const CUDA_HOST_NODE_PARAMS call{&count_run, &host_runs_};
  CUgraph other = nullptr;
  std::array<CUgraphNode, 5> nodes{};
  CUgraphExecUpdateResultInfo info{};
  return all([&] { return driver_.cuGraphCreate(&other, 0); },
             [&] { return driver_.cuGraphAddMemsetNode(&nodes[0], other, nullptr, 0, &fill, context_); },
             [&] { return driver_.cuGraphAddEmptyNode(&nodes[1], other, &nodes[0], 1); },
             [&] { return driver_.cuGraphAddKernelNode_v2(&nodes[2], other, &nodes[1], 1, &kernel); },
             [&] { return driver_.cuGraphAddMemcpyNode(&nodes[3], other, &nodes[2], 1, &copy, context_); },
             [&] { return driver_.cuGraphAddHostNode(&nodes[4], other, &nodes[3], 1, &call); },
             [&] { return driver_.cuGraphExecUpdate_v2(exec_, other, &info); },
             [&] { return driver_.cuGraphDestroy(other); });
}

CUresult GraphProgram::change_any_type() {
  Arguments arguments(other_words_, 85);
  auto kernel = kernel_params(arguments.params(mix_));
  auto copy = copy_params(between(other_words_ + 16, words_ + 8), context_);
  auto fill = fill_params({words_ + 24, 0, 77, 2, 6, 1}, context_);
  auto host = host_params(&count_ten, &host_runs_);
  auto record = event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, timed_[0]);
  return all([&] { return driver_.cuGraphExecNodeSetParams(exec_, kernel_node_, &kernel); },
             [&] { return driver_.cuGraphExecNodeSetParams(exec_, copy_node_, &copy); },
             [&] { return driver_.cuGraphExecNodeSetParams(exec_, fill_node_, &fill); },
             [&] { return driver_.cuGraphExecNodeSetParams(exec_, host_node_, &host); },
             [&] { return driver_.cuGraphExecNodeSetParams(exec_, record_node_, &record); });
}

/// Which of two events the graph records: the answer is whether it is the second one.
CUresult GraphProgram::launch_between_events(bool& is_second) {
  float milliseconds = 0;
  const CUresult result =
      all([&] { return driver_.cuEventRecord(timed_[0], stream_); },
          [&] { return driver_.cuEventRecord(timed_[1], stream_); },
          [&] { return driver_.cuGraphLaunch(exec_, stream_); },
          [&] { return driver_.cuStreamSynchronize(stream_); },
          [&] { return driver_.cuEventElapsedTime(&milliseconds, timed_[0], timed_[1]); });
  is_second = milliseconds > 0;
  return result;
}

/// What the graph waits for happens once it was launched.
CUresult GraphProgram::launch_with_events() {
  is_released_.store(false);
  const auto change_later = [](void* of) {
    auto& mine = *static_cast<GraphProgram*>(of);
    mine.is_released_.wait(false);
    mine.pinned_[0] += 17;
  };
  float milliseconds = 0;
  return all([&] { return driver_.cuLaunchHostFunc(other_stream_, change_later, this); },
             [&] { return driver_.cuEventRecord(other_event_, other_stream_); },
             [&] { return driver_.cuGraphLaunch(exec_, stream_); },
             [&] {
               is_released_.store(true);
               is_released_.notify_all();
               return driver_.cuStreamSynchronize(stream_);
             },
             [&] { return driver_.cuEventElapsedTime(&milliseconds, timed_[0], timed_[1]); });
}

GraphProgram::Answer GraphProgram::launch() {
  std::array<std::uint32_t, std::size_t{2} * count> words{};
  const auto launch_one = [&] {
    return all([&] { return driver_.cuGraphUpload(exec_, stream_); },
               [&] { return driver_.cuGraphLaunch(exec_, stream_); },
               [&] { return driver_.cuStreamSynchronize(stream_); });
  };
  bool is_second = false;
  const auto launch_it = [&] {
    if (kind_ == "any_type") return launch_between_events(is_second);
    return kind_ == "events" ? launch_with_events() : launch_one();
  };
  const CUresult result = all(
      [&] { return launch_it(); }, [&] { return driver_.cuMemcpyDtoH_v2(words.data(), words_, size_bytes); },
      [&] { return driver_.cuMemcpyDtoH_v2(words.data() + count, other_words_, size_bytes); });
  unsigned long long digest = host_runs_.load() * 2 + (is_second ? 1 : 0);
  for (const std::uint32_t word : words) digest = digest * 31 + word;
  for (std::uint32_t i = 0; i < count; ++i) digest = digest * 31 + pinned_[i];
  return {result, digest};
}

GraphProgram::Answer GraphProgram::count_nodes() {
  std::size_t nodes = 0;
  std::size_t edges = 0;
  std::array<CUgraphNode, 16> all_nodes{};
  std::size_t asked = all_nodes.size();
  bool has_kernel = false;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  const CUresult result = all([&] { return driver_.cuGraphGetNodes(graph_, nullptr, &nodes); },
                              [&] { return driver_.cuGraphGetEdges(graph_, nullptr, nullptr, &edges); },
                              [&] { return driver_.cuGraphGetNodes(graph_, all_nodes.data(), &asked); },
                              [&] { return driver_.cuGraphKernelNodeGetParams_v2(kernel_node_, &kernel); });
  for (const CUgraphNode node : all_nodes) has_kernel = has_kernel || node == kernel_node_;
  return {result, nodes * 1000 + edges * 10 + (has_kernel ? 1 : 0) + (kernel.func == mix_ ? 2 : 0)};
}

GraphProgram::Answer GraphProgram::is_enabled() {
  unsigned int enabled = 2;
  const CUresult result = driver_.cuGraphNodeGetEnabled(exec_, kernel_node_, &enabled);
  return {result, enabled};
}

CUresult GraphProgram::make_again() {
  return all([&] { return driver_.cuGraphExecDestroy(exec_); },
             [&] { return driver_.cuGraphInstantiateWithFlags(&exec_, graph_, 0); });
}

CUresult GraphProgram::destroy() {
  return all(
      [&] {
        const CUgraphExec exec = std::exchange(exec_, nullptr);
        return exec == nullptr ? CUDA_SUCCESS : driver_.cuGraphExecDestroy(exec);
      },
      [&] {
        const CUgraph graph = std::exchange(graph_, nullptr);
        return graph == nullptr ? CUDA_SUCCESS : driver_.cuGraphDestroy(graph);
      });
}

}  // namespace firebreak::test
