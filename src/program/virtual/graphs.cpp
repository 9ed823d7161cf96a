// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/graphs.h"

#include <algorithm>
#include <utility>

#include "program/virtual/process.h"

namespace firebreak::virtual_driver {

// ---- Streams that are captured ----

bool Graphs::are_captures_under_way() {
  if (captures_count_.load() == 0) return false;
  const std::lock_guard lock(captures_mutex_);
  std::erase_if(captures_,
                [](const Capture& each) { return each.object != nullptr && each.object->is_gone.load(); });
  captures_count_.store(captures_.size());
  return !captures_.empty();
}

void Graphs::capture_begins(CUstream stream, bool per_thread, CUgraph into) {
  Object* const graph = into == nullptr ? nullptr : all_.objects().find(Family::Graph, number_of(into));
  if (const auto state = graphs_.find(graph); graph != nullptr && state != graphs_.end())
    state->second.is_captured_into = true;
  Object* const object =
      is_special(number_of(stream)) ? nullptr : all_.objects().find(Family::Stream, number_of(stream));
  const bool was_idle = object != nullptr && !all_.work_of(stream, per_thread).is_under_way();
  if (object != nullptr) object->is_kept.store(true);
  has_ever_captured_.store(true);
  const std::lock_guard lock(captures_mutex_);
  captures_.push_back({stream, std::this_thread::get_id(), object, was_idle, into});
  captures_count_.store(captures_.size());
}

CUgraph Graphs::capture_ends(CUstream stream, bool per_thread) {
  const std::lock_guard lock(captures_mutex_);
  const auto found = std::ranges::find_if(captures_, [&](const Capture& each) {
    return each.stream == stream && (each.object != nullptr || each.thread == std::this_thread::get_id());
  });
  if (found == captures_.end()) return nullptr;
  const CUgraph into = found->into;
  if (found->was_idle) {  // what was queued since has gone into the graph
    Work& work = all_.work_of(stream, per_thread);
    work.end(work.queued.load());
  }
  captures_.erase(found);
  captures_count_.store(captures_.size());
  return into;
}

// ---- Graphs ----

/// What is current, or else the program's only one.
Object* Graphs::context_now() {
  Object* context = all_.objects().find(Family::Context, current_context());
  if (context == nullptr) all_.objects().for_each(Family::Context, [&](Object& each) { context = &each; });
  return context;
}

GraphReading Graphs::read(const Instance& instance, CUgraph own, Object* context) {
  const GraphSource source{instance.driver(), instance.slot(),  all_.objects(),
                           all_.taken(),      all_.arguments(), context};
  GraphReading reading = read_graph(source, own);
  if (reading.content == nullptr) return reading;
  for (GraphNodeContent& node : reading.content->nodes)
    node.seen = number_of(seen_node(reinterpret_cast<CUgraphNode>(node.seen), instance.slot()));
  return reading;
}

Object::Step Graphs::step_of_graph(const std::shared_ptr<Object*>& graph) {
  return {"graph", [this, graph](Making& making) { return make_one(graph, making); }};
}

CUgraph Graphs::add_graph(const Turn& turn, CUgraph own) {
  const auto graph = std::make_shared<Object*>(nullptr);
  Object& object = turn.objects.add(Family::Graph, number_of(own), turn.slot, {step_of_graph(graph)});
  *graph = &object;
  graphs_[&object].context = context_now();
  return reinterpret_cast<CUgraph>(object.seen);
}

void Graphs::changed(const Turn& turn, CUgraph graph) {
  Object* const object = turn.objects.find(Family::Graph, number_of(graph));
  if (object == nullptr) return;
  const auto state = graphs_.find(object);
  if (state == graphs_.end()) return;
  state->second.content = nullptr;
  state->second.is_captured_into = false;
  state->second.context = context_now();
  turn.objects.add_step(*object, turn.slot, step_of_graph(std::make_shared<Object*>(object)));
}

/// Whose it is we know of those alone that were made again; else it is of one that changes anyhow, or of any.
void Graphs::changed_node(const Turn& turn, CUgraphNode) {
  std::vector<std::uintptr_t> all;
  for (const auto& [object, state] : graphs_) all.push_back(object->seen);
  for (const std::uintptr_t each : all) changed(turn, reinterpret_cast<CUgraph>(each));
}

void Graphs::remove_graph(Object& graph) {
  const auto found = graphs_.find(&graph);
  if (found == graphs_.end()) return;
  forget_nodes(found->second);
  graphs_.erase(found);
}

std::shared_ptr<const GraphContent> Graphs::content_of(const Turn& turn, CUgraph own) {
  if (all_.is_aside()) return nullptr;
  Object* const object = turn.objects.find_own(Family::Graph, number_of(own), turn.slot);
  const auto state = object == nullptr ? graphs_.end() : graphs_.find(object);
  if (state != graphs_.end() && state->second.content != nullptr) return state->second.content;
  GraphReading reading = read(turn.instance, own, context_now());
  if (reading.content == nullptr)
    all_.stand_aside(reading.why != nullptr ? reading.why : "it has a graph that the driver does not show");
  if (state != graphs_.end()) state->second.content = reading.content;
  return reading.content;
}

// ---- Executables ----

Object::Step Graphs::step_of_exec(const std::shared_ptr<ExecState>& exec) {
  return {"exec", [this, exec](Making& making) { return make_one(exec, making); }};
}

CUgraphExec Graphs::add_exec(const Turn& turn, CUgraphExec own, std::shared_ptr<const GraphContent> content,
                             unsigned long long flags) {
  auto state = std::make_shared<ExecState>();
  state->flags = flags & ~static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
  Object& object = turn.objects.add(Family::GraphExec, number_of(own), turn.slot, {step_of_exec(state)});
  state->object = &object;
  set_content(*state, std::move(content));
  // Its graph may go, and with it what is known of nodes that have moved.
  if (state->content != nullptr && has_moved_nodes()) {
    MadeGraph& here = state->made_of[turn.slot];
    for (const GraphNodeContent& each : state->content->nodes)
      here.nodes.push_back(node_in(reinterpret_cast<CUgraphNode>(each.seen), turn.slot));
  }
  execs_[&object] = std::move(state);
  return reinterpret_cast<CUgraphExec>(object.seen);
}

std::shared_ptr<ExecState> Graphs::find_exec(CUgraphExec exec) {
  Object* const object = all_.objects().find(Family::GraphExec, number_of(exec));
  const auto found = object == nullptr ? execs_.end() : execs_.find(object);
  return found == execs_.end() ? nullptr : found->second;
}

void Graphs::update_exec(const Turn& turn, ExecState& exec, std::shared_ptr<const GraphContent> content) {
  if (content == nullptr) return;  // the program is aside
  keep_launched(exec);
  set_content(exec, std::move(content));
  turn.objects.add_step(*exec.object, turn.slot, step_of_exec(execs_[exec.object]));
}

void Graphs::set_content(ExecState& exec, std::shared_ptr<const GraphContent> content) {
  exec.content = std::move(content);
  exec.object->content.store(exec.content == nullptr ? 0 : ++contents_, std::memory_order_relaxed);
}

void Graphs::keep_launched(const ExecState& exec) {
  const std::uint64_t number = exec.object->content.load(std::memory_order_relaxed);
  if (number == 0 || exec.object->launched_content.load(std::memory_order_relaxed) != number) return;
  were_launched_.emplace_back(number, exec.content);
  if (were_launched_.size() > were_launched_max) were_launched_.pop_front();
}

std::uint64_t Graphs::note_launch(CUgraphExec exec) {
  Object* const object = all_.objects().find(Family::GraphExec, number_of(exec));
  if (object == nullptr) return 0;
  const std::uint64_t number = object->content.load(std::memory_order_relaxed);
  object->launched_content.store(number, std::memory_order_relaxed);
  return number;
}

std::shared_ptr<const GraphContent> Graphs::launched(std::uint64_t number) const {
  for (const auto& [object, exec] : execs_)
    if (object->content.load(std::memory_order_relaxed) == number) return exec->content;
  const auto kept = std::ranges::find(were_launched_, number, &decltype(were_launched_)::value_type::first);
  return kept == were_launched_.end() ? nullptr : kept->second;
}

void Graphs::remove_exec(const Turn& turn, const std::shared_ptr<ExecState>& exec) {
  keep_launched(*exec);
  execs_.erase(exec->object);
  const Instance* const receiver = all_.receiver();
  for (const auto& [slot, made] : exec->made_of) {
    if (made.graph == nullptr) continue;
    if (slot == turn.slot) turn.driver.cuGraphDestroy(made.graph);
    if (receiver != nullptr && slot == receiver->slot()) receiver->driver().cuGraphDestroy(made.graph);
  }
  exec->made_of.clear();
}

// ---- In another instance ----

void Graphs::take_from(const Instance& instance) {
  const auto its_lock = lock();
  const cuda::Backend& driver = instance.driver();
  all_.objects().for_each(Family::GraphExec, [&](Object& exec) {
    const std::uintptr_t own = exec.in[instance.slot()].load();
    if (own != 0) driver.cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(own));
  });
  all_.objects().for_each(Family::Graph, [&](Object& graph) {
    const std::uintptr_t own = graph.in[instance.slot()].load();
    if (own != 0) driver.cuGraphDestroy(reinterpret_cast<CUgraph>(own));
  });
  for (const auto& [object, exec] : execs_) {
    const auto made = exec->made_of.find(instance.slot());
    if (made != exec->made_of.end() && made->second.graph != nullptr)
      driver.cuGraphDestroy(made->second.graph);
  }
}

void Graphs::forget(Slot slot) {
  const auto its_lock = lock();
  for (const auto& [object, exec] : execs_) exec->made_of.erase(slot);
  const std::lock_guard its(nodes_mutex_);
  for (auto& [seen, place] : nodes_) place.in.erase(slot);
  std::erase_if(seen_nodes_, [slot](const auto& each) { return each.first.first == slot; });
}

void Graphs::try_again(Slot slot) {
  const auto its_lock = lock();
  const auto look = [slot](Object& object) {
    if (object.in[slot].load() == 0) object.made_up_to[slot].store(0);
  };
  for (const auto& [object, state] : graphs_) look(*object);
  for (const auto& [object, state] : execs_) look(*object);
}

namespace {

/// On a thread that makes calls there for us.
void make_current(const Instance& instance, const Object* context) {
  const std::uintptr_t there = context == nullptr ? 0 : context->in[instance.slot()].load();
  instance.driver().cuCtxSetCurrent(reinterpret_cast<CUcontext>(there));
  there_in(instance).context = there;
}

}  // namespace

/// By the keeper, or by a thread that leaves a dead instance.
CUresult Graphs::make_one(const std::shared_ptr<Object*>& of, Making& making) {
  const auto its_lock = lock();
  Object& graph = **of;
  const auto state = graphs_.find(&graph);
  if (state == graphs_.end() || state->second.is_captured_into)
    return CUDA_SUCCESS;  // it is gone, or to come
  const Instance& active = all_.active();
  if (state->second.content == nullptr) {
    const auto own = reinterpret_cast<CUgraph>(graph.in[active.slot()].load());
    make_current(active, state->second.context);
    GraphReading reading = own == nullptr ? GraphReading{} : read(active, own, state->second.context);
    make_current(active, nullptr);
    if (reading.why != nullptr) all_.stand_aside(reading.why);
    state->second.content = std::move(reading.content);
  }
  MadeGraph made;
  const CUresult result = state->second.content == nullptr
                              ? graph_is_gone
                              : make_graph(*state->second.content, making, all_.taken(), made);
  if (result != CUDA_SUCCESS && result != graph_is_gone) return result;
  const auto before = reinterpret_cast<CUgraph>(graph.in[making.slot].load());
  if (before != nullptr) making.driver.cuGraphDestroy(before);
  making.objects.set_own(graph, making.slot, number_of(made.graph));
  if (result == CUDA_SUCCESS) note_nodes(state->second, *state->second.content, made, making.slot);
  return CUDA_SUCCESS;
}

CUresult Graphs::make_one(const std::shared_ptr<ExecState>& exec, Making& making) {
  std::shared_ptr<const GraphContent> content;
  {
    const auto its_lock = lock();
    content = exec->content;
  }
  if (content == nullptr) return CUDA_SUCCESS;  // the program is aside
  MadeGraph made;
  CUgraphExec executable = nullptr;
  CUresult result = make_graph(*content, making, all_.taken(), made);
  if (result == CUDA_SUCCESS)
    result = making.driver.cuGraphInstantiateWithFlags(&executable, made.graph, exec->flags);
  for (std::size_t i = 0; result == CUDA_SUCCESS && i < content->nodes.size(); ++i) {
    if (!content->nodes[i].is_enabled && !made.are_empty[i])
      result = making.driver.cuGraphNodeSetEnabled(executable, made.nodes[i], 0);
  }
  if (result != CUDA_SUCCESS && result != graph_is_gone) {
    if (executable != nullptr) making.driver.cuGraphExecDestroy(executable);
    if (made.graph != nullptr) making.driver.cuGraphDestroy(made.graph);
    return result;
  }
  const auto its_lock = lock();
  if (exec->object->is_gone.load()) {  // the program has destroyed it meanwhile, and what was here before
    if (executable != nullptr) making.driver.cuGraphExecDestroy(executable);
    if (made.graph != nullptr) making.driver.cuGraphDestroy(made.graph);
    return CUDA_SUCCESS;
  }
  const auto before = reinterpret_cast<CUgraphExec>(exec->object->in[making.slot].load());
  if (before != nullptr) making.driver.cuGraphExecDestroy(before);
  std::erase_if(exec->made_of, [&](const auto& each) {
    return each.first != making.slot && each.first != all_.active().slot();  // instances that were left
  });
  MadeGraph& made_of = exec->made_of[making.slot];
  if (made_of.graph != nullptr) making.driver.cuGraphDestroy(made_of.graph);
  made_of = std::move(made);
  making.objects.set_own(*exec->object, making.slot, number_of(executable));
  return CUDA_SUCCESS;
}

// ---- Nodes ----

void Graphs::forget_nodes(GraphState& state) {
  const std::lock_guard its(nodes_mutex_);
  for (const std::uintptr_t seen : state.nodes) {
    const auto place = nodes_.find(seen);
    if (place == nodes_.end()) continue;
    for (const auto& [slot, own] : place->second.in) seen_nodes_.erase({slot, own});
    nodes_.erase(place);
  }
  state.nodes.clear();
}

void Graphs::note_nodes(GraphState& state, const GraphContent& content, const MadeGraph& made, Slot slot) {
  const std::lock_guard its(nodes_mutex_);
  for (std::size_t i = 0; i < content.nodes.size(); ++i) {
    const std::uintptr_t seen = content.nodes[i].seen;
    NodePlace& place = nodes_[seen];
    if (place.in.empty()) state.nodes.push_back(seen);
    seen_nodes_.erase({slot, std::exchange(place.in[slot], number_of(made.nodes[i]))});
    seen_nodes_[{slot, number_of(made.nodes[i])}] = seen;
  }
  has_moved_nodes_.store(true, std::memory_order_release);
}

CUgraphNode Graphs::node_in(CUgraphNode seen, Slot slot) {
  if (!has_moved_nodes()) return seen;
  const std::lock_guard its(nodes_mutex_);
  const auto place = nodes_.find(number_of(seen));
  if (place == nodes_.end()) return seen;
  const auto own = place->second.in.find(slot);
  return own == place->second.in.end() ? seen : reinterpret_cast<CUgraphNode>(own->second);
}

CUgraphNode Graphs::seen_node(CUgraphNode own, Slot slot) {
  if (!has_moved_nodes()) return own;
  const std::lock_guard its(nodes_mutex_);
  const auto seen = seen_nodes_.find({slot, number_of(own)});
  return seen == seen_nodes_.end() ? own : reinterpret_cast<CUgraphNode>(seen->second);
}

CUgraphNode Graphs::node_of_exec(const ExecState& exec, CUgraphNode seen, Slot slot) {
  const auto made = exec.made_of.find(slot);
  if (made == exec.made_of.end() || exec.content == nullptr) return node_in(seen, slot);
  const std::size_t count = std::min(made->second.nodes.size(), exec.content->nodes.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (exec.content->nodes[i].seen == number_of(seen)) return made->second.nodes[i];
  }
  return node_in(seen, slot);
}

}  // namespace firebreak::virtual_driver
