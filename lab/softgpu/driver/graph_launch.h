// SPDX-License-Identifier: Apache-2.0
/// The ways from nodes of graphs to work on a stream, and from a program's parameters to nodes.
#pragma once

#include <memory>

#include "softgpu/driver/graph.h"
#include "softgpu/driver/launch.h"

namespace firebreak::softgpu::driver {

/// INVALID_HANDLE: there is no such function in this process's driver. INVALID_VALUE as of a launch.
Answer<KernelNode> kernel_node_of(Process& process, const CUDA_KERNEL_NODE_PARAMS& params);
/// INVALID_VALUE: it reaches what is not mapped.
CUresult check(Process& process, const CUDA_MEMCPY3D& copy);
CUresult check(Process& process, const CUDA_MEMSET_NODE_PARAMS& fill);

/// Returns the content of a node of any type, as the function for nodes of that type does. NOT_SUPPORTED: the
/// other types.
Answer<NodeContent> content_of(Process& process, const CUgraphNodeParams& params);

/// A node gets other parameters. It stays of its type, and a kernel's attributes stay.
CUresult set(Process& process, KernelNode& into, const CUDA_KERNEL_NODE_PARAMS* params);
CUresult set(Process& process, NodeContent& into, const CUgraphNodeParams* params);

/// Puts what a graph can do in an order in which it may be done. INVALID_VALUE: there is none, or it has an
/// event or a function that is gone.
Answer<std::shared_ptr<GraphExec>> instantiate(const Graph& graph, unsigned long long flags);

/// Puts all of it on the stream. What fails first: what comes after it is not done.
CUresult launch(Process& process, Context& context, const std::shared_ptr<Stream>& stream, GraphExec& exec);

}  // namespace firebreak::softgpu::driver
