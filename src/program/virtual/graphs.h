// SPDX-License-Identifier: Apache-2.0
/// The program's graphs: which streams are being captured, what each graph and each executable does, and
/// where the instances have them.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/virtual/graph_content.h"
#include "program/virtual/instance.h"
#include "program/virtual/objects.h"

namespace firebreak::virtual_driver {

class VirtualProcess;
struct Turn;

/// What an executable does, until it goes. Of the mutex of Graphs.
struct ExecState {
  std::shared_ptr<const GraphContent> content;
  unsigned long long flags = 0;
  Object* object = nullptr;
  std::map<Slot, MadeGraph> made_of;  ///< the graphs that we have made for it
};

/// Thread safe. A driver's graphs are not: whoever gives the driver one holds the lock meanwhile.
class Graphs {
 public:
  explicit Graphs(VirtualProcess& all) : all_(all) {}

  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  // ---- Streams that are captured ----

  /// Nobody is moved in the middle of a capture.
  bool are_captures_under_way();
  /// Runs `act` while no stream is captured, and none begins to be. False: one is captured.
  template <class Act>
  bool between_captures(const Act& act) {
    const std::lock_guard lock(beginning_);
    if (are_captures_under_way()) return false;
    act();
    return true;
  }
  /// Whoever begins a capture holds this from the driver's call to the end of capture_begins().
  [[nodiscard]] std::unique_lock<std::mutex> lock_beginning() { return std::unique_lock(beginning_); }
  bool has_ever_captured() const { return has_ever_captured_.load(); }
  /// `into`: the program's graph that it goes into; then with the lock. Null: a new one.
  void capture_begins(CUstream stream, bool per_thread, CUgraph into = nullptr);
  /// The answer is that graph.
  CUgraph capture_ends(CUstream stream, bool per_thread);

  // ---- What follows needs the lock, but for make_ ----

  /// The program gets a graph that the instance has made. The answer is its handle.
  CUgraph add_graph(const Turn& turn, CUgraph own);
  /// The program has changed it: it is read again before it is made anywhere.
  void changed(const Turn& turn, CUgraph graph);
  void changed_node(const Turn& turn, CUgraphNode node);
  void remove_graph(Object& graph);

  /// What `own` does. Empty: the program is aside, or the driver has failed.
  std::shared_ptr<const GraphContent> content_of(const Turn& turn, CUgraph own);
  /// The program gets an executable. Without content there is none in another instance.
  CUgraphExec add_exec(const Turn& turn, CUgraphExec own, std::shared_ptr<const GraphContent> content,
                       unsigned long long flags);
  /// Null: it is none of those.
  std::shared_ptr<ExecState> find_exec(CUgraphExec exec);
  /// From now on it does that.
  void update_exec(const Turn& turn, ExecState& exec, std::shared_ptr<const GraphContent> content);
  /// What a program launches by it: a number for what it does now; 0: it is not known. Takes no lock.
  std::uint64_t note_launch(CUgraphExec exec);
  /// What was launched by that number. Null: that is so long ago that it is forgotten.
  std::shared_ptr<const GraphContent> launched(std::uint64_t number) const;
  /// With the graphs that were made for it, in this instance and in the one that is to come.
  void remove_exec(const Turn& turn, const std::shared_ptr<ExecState>& exec);

  /// What could not be made in an instance is tried once more: memory may be there again.
  void try_again(Slot slot);

  /// Takes all graphs out of an instance that nobody uses any more.
  void take_from(const Instance& instance);
  /// As Objects::forget.
  void forget(Slot slot);

  // ---- Nodes, by what the program calls them ----

  bool has_moved_nodes() const { return has_moved_nodes_.load(std::memory_order_acquire); }
  CUgraphNode node_in(CUgraphNode seen, Slot slot);
  CUgraphNode seen_node(CUgraphNode own, Slot slot);
  /// The node of an executable: its own graph's, where we have made that.
  CUgraphNode node_of_exec(const ExecState& exec, CUgraphNode seen, Slot slot);

 private:
  struct Capture {
    CUstream stream;
    std::thread::id thread;  ///< of a thread's own stream
    const Object* object;    ///< null: it is a default stream
    bool was_idle;
    CUgraph into;
  };
  struct GraphState {
    std::shared_ptr<const GraphContent> content;  ///< null: it is to be read
    Object* context = nullptr;                    ///< that was current when it changed last
    bool is_captured_into = false;                ///< it is not to be read now
    std::vector<std::uintptr_t> nodes;            ///< that were made elsewhere, as the program calls them
  };
  struct NodePlace {
    std::map<Slot, std::uintptr_t> in;
  };

  void set_content(ExecState& exec, std::shared_ptr<const GraphContent> content);
  void keep_launched(const ExecState& exec);

  GraphReading read(const Instance& instance, CUgraph own, Object* context);
  Object* context_now();
  Object::Step step_of_graph(const std::shared_ptr<Object*>& graph);
  Object::Step step_of_exec(const std::shared_ptr<ExecState>& exec);
  CUresult make_one(const std::shared_ptr<Object*>& graph, Making& making);
  CUresult make_one(const std::shared_ptr<ExecState>& exec, Making& making);
  void forget_nodes(GraphState& state);
  void note_nodes(GraphState& state, const GraphContent& content, const MadeGraph& made, Slot slot);

  VirtualProcess& all_;
  std::mutex beginning_;  ///< A capture begins under this one. It comes before the other two.
  std::atomic<bool> has_ever_captured_{false};
  std::mutex captures_mutex_;
  std::vector<Capture> captures_;  ///< of that mutex
  std::atomic<std::size_t> captures_count_{0};
  std::mutex mutex_;  ///< guards what follows, and every graph of a driver
  std::map<Object*, GraphState> graphs_;
  std::map<Object*, std::shared_ptr<ExecState>> execs_;
  std::uint64_t contents_ = 0;  ///< of executables, so far
  /// What executables did that have changed or gone since they were launched: it may be under way. The
  /// newest.
  std::deque<std::pair<std::uint64_t, std::shared_ptr<const GraphContent>>> were_launched_;
  static constexpr std::size_t were_launched_max = 64;
  std::atomic<bool> has_moved_nodes_{false};
  std::mutex nodes_mutex_;  ///< of the next two; after mutex_
  std::unordered_map<std::uintptr_t, NodePlace> nodes_;
  std::map<std::pair<Slot, std::uintptr_t>, std::uintptr_t> seen_nodes_;
};

}  // namespace firebreak::virtual_driver
