// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/graph_operations.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "program/virtual/addresses.h"
#include "program/virtual/notes.h"

namespace firebreak::virtual_driver {
namespace {

/// More is not kept of a launch by itself either.
constexpr std::size_t parameter_bytes_max = 4096;
constexpr std::size_t slices_max = 1024;

GraphOperation refused(abi::RedoCause cause) {
  GraphOperation operation;
  operation.kind = abi::RedoKind::CannotRedo;
  operation.cause = cause;
  return operation;
}

bool is_plain(const CUgraphEdgeData& data) {
  constexpr CUgraphEdgeData plain{};
  return std::memcmp(&data, &plain, sizeof plain) == 0;
}

/// Where the content's nodes stand, those first for which nobody waits.
std::vector<std::size_t> order_of(const GraphContent& content) {
  std::vector<std::size_t> waits_for(content.nodes.size());
  std::vector<std::vector<std::size_t>> before(content.nodes.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < content.nodes.size(); ++i) {
    waits_for[i] = content.nodes[i].dependencies.size();
    for (const auto& each : content.nodes[i].dependencies) before[each.node].push_back(i);
    if (waits_for[i] == 0) order.push_back(i);
  }
  for (std::size_t next = 0; next < order.size(); ++next)
    for (const std::size_t each : before[order[next]])
      if (--waits_for[each] == 0) order.push_back(each);
  return order;
}

class GraphOperations {
 public:
  GraphOperations(const cuda::Backend& driver, Slot slot, ArgumentAddresses& arguments)
      : driver_(driver), slot_(slot), arguments_(arguments) {}

  void add(const GraphContent& content) {
    const std::vector<std::size_t> order = order_of(content);
    if (order.size() != content.nodes.size()) return add(refused(abi::RedoCause::Unknown));
    for (const std::size_t i : order) add(content.nodes[i]);
  }
  std::vector<GraphOperation> take() { return std::move(all_); }

 private:
  void add(GraphOperation operation) { all_.push_back(std::move(operation)); }

  void add(const GraphNodeContent& node) {
    // A kernel that begins before the one before it has ended.
    const auto is_ordinary = [](const auto& each) { return is_plain(each.data); };
    if (!std::ranges::all_of(node.dependencies, is_ordinary)) return add(refused(abi::RedoCause::Unknown));
    if (!node.is_enabled) return;
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        return add(launch(node).value_or(refused(abi::RedoCause::Unknown)));
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        return add_copies(node.copy);
      case CU_GRAPH_NODE_TYPE_MEMSET:
        return add(fill(node.fill));
      case CU_GRAPH_NODE_TYPE_GRAPH:
        return add(*node.child);
      case CU_GRAPH_NODE_TYPE_EMPTY:
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return;
      case CU_GRAPH_NODE_TYPE_HOST:
        return add(refused(abi::RedoCause::HostCallback));
      default:
        return add(refused(abi::RedoCause::Unknown));
    }
  }

  std::optional<GraphOperation> launch(const GraphNodeContent& node) {
    const auto matters = [](const auto& each) { return !is_harmless(each.first, each.second); };
    if (std::ranges::any_of(node.attributes, matters)) return std::nullopt;
    GraphOperation operation;
    operation.kind = abi::RedoKind::Launch;
    abi::RedoLaunch& launch = operation.body.launch;
    const CUDA_KERNEL_NODE_PARAMS& kernel = node.kernel;
    launch = {};
    launch.kernel = node.code->seen;
    std::ranges::copy(std::array{kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ}, launch.grid);
    std::ranges::copy(std::array{kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ}, launch.block);
    launch.shared_bytes = kernel.sharedMemBytes;
    if (!put_parameters(node, operation.payload)) return std::nullopt;
    return operation;
  }

  bool put_parameters(const GraphNodeContent& node, std::vector<std::byte>& payload) {
    if (node.in_one_piece) {
      const auto bytes = std::as_bytes(std::span(node.arguments[0]));
      payload.assign(bytes.begin(), bytes.end());
      return true;
    }
    const auto own = reinterpret_cast<CUfunction>(node.code->in[slot_].load());
    const auto* const layout = arguments_.layout_of(driver_, *node.code, own);
    if (layout == nullptr || layout->size() != node.arguments.size()) return false;
    for (std::size_t i = 0; i < layout->size(); ++i)
      if ((*layout)[i].size_bytes != node.arguments[i].size()) return false;
    std::vector<const void*> pointers;
    for (const std::string& each : node.arguments) pointers.push_back(each.data());
    std::array<std::byte, parameter_bytes_max> room;
    const auto packed = pack(*layout, pointers.data(), room);
    if (packed) payload.assign(packed->begin(), packed->end());
    return packed.has_value();
  }

  /// A slice each. The driver has allowed no arrays.
  void add_copies(const CUDA_MEMCPY3D& copy) {
    const auto side = [&](CUmemorytype type, const void* host, CUdeviceptr device, std::size_t x,
                          std::size_t y, std::size_t z, std::size_t pitch, std::size_t height) {
      const std::uint64_t base = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(host) : device;
      const abi::RedoArea area{base + (z * height + y) * pitch + x, copy.WidthInBytes, pitch, copy.Height};
      return area;
    };
    if (copy.Depth > slices_max) return add(refused(abi::RedoCause::Unknown));
    abi::RedoArea from = side(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes, copy.srcY,
                              copy.srcZ, copy.srcPitch, copy.srcHeight);
    abi::RedoArea to = side(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes, copy.dstY,
                            copy.dstZ, copy.dstPitch, copy.dstHeight);
    for (std::size_t slice = 0; slice < copy.Depth; ++slice) {
      GraphOperation operation;
      operation.kind = abi::RedoKind::Copy;
      operation.body.copy = {to, from};
      add(std::move(operation));
      from.address += copy.srcHeight * copy.srcPitch;
      to.address += copy.dstHeight * copy.dstPitch;
    }
  }

  static GraphOperation fill(const CUDA_MEMSET_NODE_PARAMS& fill) {
    if (!is_in_window(fill.dst)) return refused(abi::RedoCause::HostMemory);
    GraphOperation operation;
    operation.kind = abi::RedoKind::Fill;
    operation.body.fill = {
        {fill.dst, fill.width * fill.elementSize, fill.pitch, fill.height}, fill.value, fill.elementSize};
    return operation;
  }

  const cuda::Backend& driver_;
  Slot slot_;
  ArgumentAddresses& arguments_;
  std::vector<GraphOperation> all_;
};

}  // namespace

std::vector<GraphOperation> operations_of(const GraphContent& content, const cuda::Backend& driver, Slot slot,
                                          ArgumentAddresses& arguments) {
  GraphOperations operations(driver, slot, arguments);
  operations.add(content);
  return operations.take();
}

}  // namespace firebreak::virtual_driver
