// SPDX-License-Identifier: Apache-2.0
/// Graphs come and go, and what can be launched of them.
#include <algorithm>

#include "program/virtual/calls.h"

namespace firebreak::virtual_driver::own {
namespace {

/// Makes a graph, which is empty or another one's.
template <class Make>
CUresult make(const OwnCall& call, CUgraph* graph, const Make& make_one) {
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return call.all.call([&](const Turn& turn) {
    const auto lock = call.all.graphs().lock();
    CUgraph own = nullptr;
    const CUresult result = make_one(turn, &own);
    if (result == CUDA_SUCCESS) *graph = turn.slot == anchor ? own : call.all.graphs().add_graph(turn, own);
    return result;
  });
}

/// Makes an executable by `make_one`. What the graph does is read now: programs destroy it next.
template <class Make>
CUresult instantiate(const OwnCall& call, CUgraphExec* exec, CUgraph graph, unsigned long long flags,
                     const Make& make_one) {
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
    call.all.stand_aside("it has a graph that kernels launch");
  const CUresult result = call.all.call([&](const Turn& turn) {
    Graphs& graphs = call.all.graphs();
    const auto lock = graphs.lock();
    const CUgraph own = turn.objects.translate(graph, turn.slot);
    CUgraphExec made = nullptr;
    const CUresult instantiated = make_one(turn, &made, own);
    if (instantiated != CUDA_SUCCESS) return instantiated;
    *exec = turn.slot == anchor ? made : graphs.add_exec(turn, made, graphs.content_of(turn, own), flags);
    return instantiated;
  });
  if (result == CUDA_SUCCESS) call.all.something_new();
  return result;
}

/// An error's node, as the program calls it.
void see(const Turn& turn, CUgraphNode* node) {
  if (node != nullptr) *node = turn.all.graphs().seen_node(*node, turn.slot);
}

/// The same types of nodes in the same places, and each waits for the same.
bool is_alike(const GraphContent& one, const GraphContent& other) {
  return std::ranges::equal(
      one.nodes, other.nodes, [](const GraphNodeContent& its, const GraphNodeContent& others) {
        return its.type == others.type &&
               std::ranges::equal(its.dependencies, others.dependencies, {},
                                  &GraphNodeContent::Dependency::node, &GraphNodeContent::Dependency::node);
      });
}

bool are_all_enabled(const GraphContent& content) {
  return std::ranges::all_of(content.nodes, &GraphNodeContent::is_enabled);
}

/// Gives an executable what another graph does.
template <class Update>
CUresult update(const OwnCall& call, CUgraphExec exec, CUgraph graph, const Update& update_one) {
  return call.all.call([&](const Turn& turn) {
    Graphs& graphs = call.all.graphs();
    const auto lock = graphs.lock();
    const CUgraph own = turn.objects.translate(graph, turn.slot);
    const CUresult updated = update_one(turn, turn.objects.translate(exec, turn.slot), own);
    const auto state = graphs.find_exec(exec);
    if (updated != CUDA_SUCCESS || state == nullptr || state->content == nullptr) return updated;
    const auto now = graphs.content_of(turn, own);
    if (now == nullptr) return updated;
    // Its nodes go on to be those of the graph that it was made of, and those that do nothing do nothing. The
    // driver finds out by itself which is which; where the graphs are not alike we do not.
    auto content = std::make_shared<GraphContent>(*now);
    const bool are_alike = is_alike(*now, *state->content);
    if (!are_alike && !are_all_enabled(*state->content))
      call.all.stand_aside("it changes a graph in a way that is not followed");
    for (std::size_t i = 0; i < content->nodes.size(); ++i) {
      content->nodes[i].seen = are_alike ? state->content->nodes[i].seen : 0;
      content->nodes[i].is_enabled = !are_alike || state->content->nodes[i].is_enabled;
    }
    graphs.update_exec(turn, *state, std::move(content));
    return updated;
  });
}

}  // namespace

CUresult cuGraphCreate(const OwnCall& call, CUgraph* graph, unsigned int flags) {
  return make(call, graph,
              [&](const Turn& turn, CUgraph* own) { return turn.driver.cuGraphCreate(own, flags); });
}

CUresult cuGraphClone(const OwnCall& call, CUgraph* clone, CUgraph original) {
  return make(call, clone, [&](const Turn& turn, CUgraph* own) {
    return turn.driver.cuGraphClone(own, turn.objects.translate(original, turn.slot));
  });
}

/// An executable goes on without its graph.
CUresult cuGraphDestroy(const OwnCall& call, CUgraph graph) {
  return call.all.call([&](const Turn& turn) {
    const auto lock = call.all.graphs().lock();
    Object* const object = turn.objects.find(Family::Graph, number_of(graph));
    const CUgraph own = turn.objects.translate(graph, turn.slot);
    // Null: something that was in it was gone before a move.
    const CUresult result =
        object != nullptr && own == nullptr ? CUDA_SUCCESS : turn.driver.cuGraphDestroy(own);
    if (result != CUDA_SUCCESS || object == nullptr) return result;
    call.all.graphs().remove_graph(*object);
    end_object<CUgraph>(turn, object, [](const cuda::Backend& driver, CUgraph there) {
      return driver.cuGraphDestroy(there);
    });
    return result;
  });
}

CUresult cuGraphExecDestroy(const OwnCall& call, CUgraphExec exec) {
  return call.all.call([&](const Turn& turn) {
    const auto lock = call.all.graphs().lock();
    const auto state = call.all.graphs().find_exec(exec);
    const CUgraphExec own = turn.objects.translate(exec, turn.slot);
    const CUresult result =
        state != nullptr && own == nullptr ? CUDA_SUCCESS : turn.driver.cuGraphExecDestroy(own);
    if (result != CUDA_SUCCESS || state == nullptr) return result;
    end_object<CUgraphExec>(turn, state->object, [](const cuda::Backend& driver, CUgraphExec there) {
      return driver.cuGraphExecDestroy(there);
    });
    call.all.graphs().remove_exec(turn, state);
    return result;
  });
}

CUresult cuGraphInstantiateWithFlags(const OwnCall& call, CUgraphExec* exec, CUgraph graph,
                                     unsigned long long flags) {
  return instantiate(call, exec, graph, flags, [&](const Turn& turn, CUgraphExec* made, CUgraph own) {
    return turn.driver.cuGraphInstantiateWithFlags(made, own, flags);
  });
}

CUresult cuGraphInstantiateWithParams(const OwnCall& call, CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return instantiate(call, exec, graph, params->flags, [&](const Turn& turn, CUgraphExec* made, CUgraph own) {
    CUDA_GRAPH_INSTANTIATE_PARAMS here = *params;
    here.hUploadStream = turn.objects.translate(here.hUploadStream, turn.slot);
    const auto plain =
        call.which(turn.driver.cuGraphInstantiateWithParams, turn.driver.cuGraphInstantiateWithParams_ptsz);
    const CUresult result = plain(made, own, &here);
    see(turn, &here.hErrNode_out);
    params->hErrNode_out = here.hErrNode_out;
    params->result_out = here.result_out;
    return result;
  });
}

CUresult cuGraphInstantiate(const OwnCall& call, CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node,
                            char* log, std::size_t size_bytes) {
  return instantiate(call, exec, graph, 0, [&](const Turn& turn, CUgraphExec* made, CUgraph own) {
    const CUresult result = turn.driver.cuGraphInstantiate(made, own, error_node, log, size_bytes);
    if (result != CUDA_SUCCESS) see(turn, error_node);
    return result;
  });
}

CUresult cuGraphInstantiate_v2(const OwnCall& call, CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node,
                               char* log, std::size_t size_bytes) {
  return instantiate(call, exec, graph, 0, [&](const Turn& turn, CUgraphExec* made, CUgraph own) {
    const CUresult result = turn.driver.cuGraphInstantiate_v2(made, own, error_node, log, size_bytes);
    if (result != CUDA_SUCCESS) see(turn, error_node);
    return result;
  });
}

CUresult cuGraphExecUpdate(const OwnCall& call, CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* why) {
  return update(call, exec, graph, [&](const Turn& turn, CUgraphExec own, CUgraph from) {
    const CUresult result = turn.driver.cuGraphExecUpdate(own, from, error_node, why);
    if (result != CUDA_SUCCESS) see(turn, error_node);
    return result;
  });
}

CUresult cuGraphExecUpdate_v2(const OwnCall& call, CUgraphExec exec, CUgraph graph,
                              CUgraphExecUpdateResultInfo* info) {
  return update(call, exec, graph, [&](const Turn& turn, CUgraphExec own, CUgraph from) {
    const CUresult result = turn.driver.cuGraphExecUpdate_v2(own, from, info);
    if (result != CUDA_SUCCESS && info != nullptr) {
      see(turn, &info->errorNode);
      see(turn, &info->errorFromNode);
    }
    return result;
  });
}

namespace {

template <class Get>
CUresult get_edges(const OwnCall& call, CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count,
                   const Get& get) {
  return call.all.call([&](const Turn& turn) {
    const auto lock = call.all.graphs().lock();
    const CUresult result = get(turn, turn.objects.translate(graph, turn.slot));
    if (result != CUDA_SUCCESS || from == nullptr || to == nullptr) return result;
    for (std::size_t i = 0; i < *count; ++i) {
      see(turn, from + i);
      see(turn, to + i);
    }
    return result;
  });
}

}  // namespace

CUresult cuGraphGetEdges(const OwnCall& call, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                         std::size_t* count) {
  return get_edges(call, graph, from, to, count, [&](const Turn& turn, CUgraph own) {
    return turn.driver.cuGraphGetEdges(own, from, to, count);
  });
}

CUresult cuGraphGetEdges_v2(const OwnCall& call, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, std::size_t* count) {
  return get_edges(call, graph, from, to, count, [&](const Turn& turn, CUgraph own) {
    return turn.driver.cuGraphGetEdges_v2(own, from, to, data, count);
  });
}

}  // namespace firebreak::virtual_driver::own
