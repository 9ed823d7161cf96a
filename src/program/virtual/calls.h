// SPDX-License-Identifier: Apache-2.0
/// One call of the program's, made in an instance: what its arguments are there, and what has to be kept of
/// them to make the same call in another instance. And our own functions in place of the driver's (ways.def).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "program/virtual/notes.h"
#include "program/virtual/process.h"
#include "shared/abi/cuda_api.h"
#include "shared/abi/cuda_api_rows.h"
#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_graphs.h"

#include "program/virtual/ways.def"

/// own, again, sets, anchor, aside or passed.
#define VIRTUAL_WAY(symbol, purpose) CUDA_SECOND(VIRTUAL_WAY_##symbol, VIRTUAL_BY_##purpose, ~)
#define VIRTUAL_REASON(symbol, purpose) CUDA_THIRD(VIRTUAL_WAY_##symbol, VIRTUAL_BY_##purpose, ~)

namespace firebreak::virtual_driver {

using abi::CudaParameterKind;
using abi::CudaPurpose;

/// What an argument means, as a type.
template <CudaParameterKind kind>
struct As {};

// ---- What an argument is in an instance ----

/// Takes an object's handle from an instance, and gives the program the one that the program knows it by, or
/// is to know it by.
template <class Handle>
class Taken {
 public:
  Taken(const Turn& turn, Handle* program) : turn_(turn), program_(program) {}
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  /// Of an object that is known already; what is not followed is the driver's own.
  ~Taken() {
    if (program_ == nullptr || own_ == nothing()) return;
    Object* const known = turn_.objects.find_own(FamilyOf<Handle>::value, number_of(own_), turn_.slot);
    *program_ = known == nullptr ? own_ : (Handle)known->seen;  // NOLINT: handles are numbers, too
  }
  operator Handle*() { return program_ == nullptr ? nullptr : &own_; }  // NOLINT: for the driver's parameter

 private:
  static Handle nothing() { return (Handle)~std::uintptr_t{0}; }  // NOLINT

  const Turn& turn_;
  Handle* program_;
  Handle own_ = nothing();
};

/// A launch's configuration, with the instance's own stream and events.
class LaunchConfig {
 public:
  LaunchConfig(const Turn& turn, const CUlaunchConfig* program);
  operator const CUlaunchConfig*() {
    return given_ ? &config_ : nullptr;
  }  // NOLINT: for the driver's parameter

 private:
  bool given_;
  CUlaunchConfig config_{};
  std::vector<CUlaunchAttribute> attributes_;
};

/// A copy's description, with the addresses that the instance has.
template <class Description>
class Copy {
 public:
  Copy(const Turn& turn, const Description* program) : given_(program != nullptr) {
    if (!given_) return;
    here_ = *program;
    here_.srcDevice = turn.translate_for_use(here_.srcDevice);
    here_.dstDevice = turn.translate_for_use(here_.dstDevice);
    if constexpr (std::is_same_v<Description, CUDA_MEMCPY3D_PEER>) {
      here_.srcContext = turn.objects.translate(here_.srcContext, turn.slot);
      here_.dstContext = turn.objects.translate(here_.dstContext, turn.slot);
    }
  }
  operator const Description*() { return given_ ? &here_ : nullptr; }  // NOLINT: for the driver's parameter

 private:
  bool given_;
  Description here_{};
};

/// A fill's, with the address that the instance has.
class Fill {
 public:
  Fill(const Turn& turn, const CUDA_MEMSET_NODE_PARAMS* program) : given_(program != nullptr) {
    if (!given_) return;
    here_ = *program;
    here_.dst = turn.translate_for_use(here_.dst);
  }
  operator const CUDA_MEMSET_NODE_PARAMS*() { return given_ ? &here_ : nullptr; }  // NOLINT

 private:
  bool given_;
  CUDA_MEMSET_NODE_PARAMS here_{};
};

/// A kernel node's parameters, with the instance's own function and context.
template <class Params>
class KernelNodeParams {
 public:
  KernelNodeParams(const Turn& turn, const Params* program) : given_(program != nullptr) {
    if (!given_) return;
    here_ = *program;
    here_.func = turn.objects.translate(here_.func, turn.slot);
    if constexpr (std::is_same_v<Params, CUDA_KERNEL_NODE_PARAMS>) {
      here_.kern = turn.objects.translate(here_.kern, turn.slot);
      here_.ctx = turn.objects.translate(here_.ctx, turn.slot);
    }
  }
  operator const Params*() const { return given_ ? &here_ : nullptr; }  // NOLINT: for the driver's parameter

 private:
  bool given_;
  Params here_{};
};

/// The other way, once the driver has answered.
template <class Params>
class TakenKernelNodeParams {
 public:
  TakenKernelNodeParams(const Turn& turn, Params* program) : turn_(turn), program_(program) {}
  TakenKernelNodeParams(const TakenKernelNodeParams&) = delete;
  TakenKernelNodeParams& operator=(const TakenKernelNodeParams&) = delete;
  ~TakenKernelNodeParams() {
    if (program_ == nullptr) return;
    see(Family::Code, program_->func);
    if constexpr (std::is_same_v<Params, CUDA_KERNEL_NODE_PARAMS>) {
      see(Family::Code, program_->kern);
      see(Family::Context, program_->ctx);
    }
  }
  operator Params*() { return program_; }  // NOLINT: for the driver's parameter

 private:
  template <class Handle>
  void see(Family family, Handle& handle) {
    Object* const known = turn_.objects.find_own(family, number_of(handle), turn_.slot);
    if (known != nullptr) handle = (Handle)known->seen;  // NOLINT: handles are numbers, too
  }
  const Turn& turn_;
  Params* program_;
};

/// A node's of any type, with what the instance has. What the driver writes into them is the program's.
class NodeParams {
 public:
  NodeParams(const Turn& turn, CUgraphNodeParams* program);
  NodeParams(const NodeParams&) = delete;
  NodeParams& operator=(const NodeParams&) = delete;
  ~NodeParams();
  operator CUgraphNodeParams*() {
    return program_ == nullptr ? nullptr : &here_;
  }  // NOLINT: for the driver's parameter

 private:
  CUgraphNodeParams* program_;
  CUgraphNodeParams here_{};
};

/// Nodes of graphs, as the instance calls them.
template <class Node>
class Nodes {
 public:
  Nodes(const Turn& turn, Node* program, std::size_t count) : program_(program) {
    if (program == nullptr || !turn.all.graphs().has_moved_nodes()) return;
    for (std::size_t i = 0; i < count; ++i) here_.push_back(turn.all.graphs().node_in(program[i], turn.slot));
  }
  operator Node*() { return here_.empty() ? program_ : here_.data(); }  // NOLINT

 private:
  Node* program_;
  std::vector<CUgraphNode> here_;
};

/// Where the driver writes some, and how many.
class TakenNodes {
 public:
  TakenNodes(const Turn& turn, CUgraphNode* program, const std::size_t* count)
      : turn_(turn), program_(program), count_(count) {}
  TakenNodes(const TakenNodes&) = delete;
  TakenNodes& operator=(const TakenNodes&) = delete;
  ~TakenNodes() {
    if (program_ == nullptr || !turn_.all.graphs().has_moved_nodes()) return;
    const std::size_t count = count_ == nullptr ? 1 : *count_;
    for (std::size_t i = 0; i < count; ++i)
      program_[i] = turn_.all.graphs().seen_node(program_[i], turn_.slot);
  }
  operator CUgraphNode*() { return program_; }  // NOLINT: for the driver's parameter

 private:
  const Turn& turn_;
  CUgraphNode* program_;
  const std::size_t* count_;
};

/// Addresses stand inside of these.
template <class Type>
inline constexpr bool holds_many_addresses =
    std::is_same_v<Type, CUDA_MEMCPY3D_BATCH_OP*> || std::is_same_v<Type, CUstreamBatchMemOpParams*> ||
    std::is_same_v<Type, CUmemDecompressParams*>;

template <CudaParameterKind kind, class Type, class... Rest>
decltype(auto) given(As<kind>, const Turn& turn, Type value, const Rest&... rest) {
  if constexpr (kind == CudaParameterKind::Handle || kind == CudaParameterKind::Stream) {
    if constexpr (Followed<Type>) {
      return turn.objects.translate(value, turn.slot);
    } else if constexpr (std::is_same_v<Type, CUgraphNode>) {
      return turn.all.graphs().node_in(value, turn.slot);
    } else {
      return value;
    }
  } else if constexpr (kind == CudaParameterKind::HandleOut) {
    using Handle = std::remove_pointer_t<Type>;
    if constexpr (Followed<Handle>) {
      return Taken<Handle>(turn, value);
    } else if constexpr (std::is_same_v<Handle, CUgraphNode>) {
      return TakenNodes(turn, value, nullptr);
    } else {
      return value;
    }
  } else if constexpr (kind == CudaParameterKind::HandleArray &&
                       std::is_same_v<std::remove_const_t<std::remove_pointer_t<Type>>, CUgraphNode>) {
    return Nodes<std::remove_pointer_t<Type>>(turn, value, rest...);
  } else if constexpr (kind == CudaParameterKind::HandleArrayOut && std::is_same_v<Type, CUgraphNode*>) {
    return TakenNodes(turn, value, rest...);
  } else if constexpr (std::is_same_v<Type, const CUDA_KERNEL_NODE_PARAMS*> ||
                       std::is_same_v<Type, const CUDA_KERNEL_NODE_PARAMS_v1*>) {
    return KernelNodeParams<std::remove_const_t<std::remove_pointer_t<Type>>>(turn, value);
  } else if constexpr (std::is_same_v<Type, CUDA_KERNEL_NODE_PARAMS*> ||
                       std::is_same_v<Type, CUDA_KERNEL_NODE_PARAMS_v1*>) {
    return TakenKernelNodeParams<std::remove_pointer_t<Type>>(turn, value);
  } else if constexpr (std::is_same_v<Type, const CUDA_MEMSET_NODE_PARAMS*>) {
    return Fill(turn, value);
  } else if constexpr (std::is_same_v<Type, CUgraphNodeParams*>) {
    return NodeParams(turn, value);
  } else if constexpr (std::is_same_v<Type, const CUlaunchConfig*>) {
    return LaunchConfig(turn, value);
  } else if constexpr (std::is_same_v<Type, const CUDA_MEMCPY2D*>) {
    return Copy<CUDA_MEMCPY2D>(turn, value);
  } else if constexpr (std::is_same_v<Type, const CUDA_MEMCPY3D*>) {
    return Copy<CUDA_MEMCPY3D>(turn, value);
  } else if constexpr (std::is_same_v<Type, const CUDA_MEMCPY3D_PEER*>) {
    return Copy<CUDA_MEMCPY3D_PEER>(turn, value);
  } else if constexpr (kind == CudaParameterKind::DevicePointer && std::is_same_v<Type, CUdeviceptr>) {
    return turn.translate_for_use(value);
  } else if constexpr (kind == CudaParameterKind::DevicePointerArray || holds_many_addresses<Type>) {
    turn.beware_of_addresses();
    return value;
  } else {
    return value;
  }
}

// ---- What is kept of an argument ----

template <CudaParameterKind kind, class Type>
auto kept(As<kind>, Type value) {
  if constexpr (kind == CudaParameterKind::HostIn) {
    static_assert(std::is_same_v<Type, const char*>,
                  "only names are kept; an image takes a function of its own");
    return value == nullptr ? std::optional<std::string>() : std::optional<std::string>(value);
  } else {
    return value;
  }
}

template <CudaParameterKind kind, class Type>
auto again(As<kind>, Making& making, const Type& value) {
  if constexpr (std::is_same_v<Type, std::optional<std::string>>) {
    return value ? value->c_str() : nullptr;
  } else if constexpr (kind == CudaParameterKind::HandleOut) {
    return reinterpret_cast<Type>(&making.made);
  } else if constexpr (kind == CudaParameterKind::Handle || kind == CudaParameterKind::Stream) {
    if constexpr (Followed<Type>) {
      return making.in(value);
    } else {
      return value;
    }
  } else {
    return value;
  }
}

#define VIRTUAL_GIVEN(kind, type, name, ...) \
  ::firebreak::virtual_driver::given(As<CudaParameterKind::kind>{}, turn, name __VA_OPT__(, ) __VA_ARGS__)
#define VIRTUAL_KEPT(kind, type, name, ...) \
  name = ::firebreak::virtual_driver::kept(As<CudaParameterKind::kind>{}, name)
#define VIRTUAL_GIVEN_AGAIN(kind, type, name, ...) \
  ::firebreak::virtual_driver::again(As<CudaParameterKind::kind>{}, making, name)

// ---- What kind of work a call gives ----

constexpr bool gives_work(CudaPurpose purpose) {
  return purpose == CudaPurpose::Launches || purpose == CudaPurpose::Copies ||
         purpose == CudaPurpose::Fills || purpose == CudaPurpose::Enqueues;
}

inline CUstream stream_among() { return nullptr; }
template <class First, class... Rest>
CUstream stream_among(First first, Rest... rest) {
  if constexpr (std::is_same_v<First, CUstream>) {
    return first;
  } else if constexpr (std::is_same_v<First, const CUlaunchConfig*>) {
    return first == nullptr ? nullptr : first->hStream;
  } else {
    return stream_among(rest...);
  }
}
template <class... Arguments>
inline constexpr bool says_stream =
    ((std::is_same_v<Arguments, CUstream> || std::is_same_v<Arguments, const CUlaunchConfig*>) || ...);

/// While it is there, so is a call, in one of the counts of its work.
class Counted {
 public:
  explicit Counted(std::atomic<std::uint32_t>& calls) : calls_(calls) { calls_.fetch_add(1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { calls_.fetch_sub(1); }

 private:
  std::atomic<std::uint32_t>& calls_;
};

/// While it is there, so is a call that gives such work. The outside hears of that before the driver.
class Giving {
 public:
  Giving(VirtualProcess& all, Work& work) : counted_(work.givers) { all.word().begin(); }

 private:
  Counted counted_;
};

template <class Act>
CUresult counted_first(Work& work, const Act& act) {
  const Counted counted(work.counted_first);
  return act();
}

/// Of a function that gives work: what it queues is counted and noted after it, since a call that answers an
/// error has queued nothing; what returns once it has worked, before it, since it may have worked although it
/// answers one.
template <class Note, CudaPurpose purpose, bool per_thread, class Act, class... Arguments>
CUresult with_work(const Turn& turn, const Act& act, Arguments... arguments) {
  const auto give = [&](Work& work) {
    turn.all.give(work,
                  [&](GivenWork& given, const Work& its) { Note::put(turn, given, its, arguments...); });
  };
  if constexpr (gives_work(purpose) && says_stream<Arguments...>) {
    const CUstream stream = stream_among(arguments...);
    Work& work = turn.all.work_of(stream, per_thread);
    const Giving giving(turn.all, work);
    const CUresult result = act();
    if (result != CUDA_SUCCESS) return result;
    give(work);
    turn.all.maybe_mark(turn, work, stream);
    return result;
  } else if constexpr (gives_work(purpose)) {
    Work& work = turn.all.work_of(nullptr, per_thread);
    const Giving giving(turn.all, work);
    const CUresult result = counted_first(work, [&] {
      give(work);
      return act();
    });
    if (result != CUDA_SUCCESS) return result;
    turn.all.maybe_mark(turn, work, nullptr);
    turn.all.saw_an_end();
    return result;
  } else {
    const CUresult result = act();
    if constexpr (purpose == CudaPurpose::Synchronizes) {
      if (result == CUDA_SUCCESS) turn.all.saw_an_end();
    }
    return result;
  }
}

// ---- What changes a graph ----

inline void note_graph_change(const Turn&) {}
template <class First, class... Rest>
void note_graph_change(const Turn& turn, First first, Rest... rest) {
  if constexpr (std::is_same_v<First, CUgraph>) {
    turn.all.graphs().changed(turn, first);
  } else if constexpr (std::is_same_v<First, CUgraphNode>) {
    turn.all.graphs().changed_node(turn, first);
  } else {
    note_graph_change(turn, rest...);
  }
}

/// Of a function that is given a graph or a node: one at a time, and the keeper not meanwhile.
template <CudaPurpose purpose, class Act, class... Arguments>
CUresult with_graph(const Turn& turn, const Act& act, Arguments... arguments) {
  constexpr bool is_of_graph =
      ((std::is_same_v<Arguments, CUgraph> || std::is_same_v<Arguments, CUgraphNode>) || ...);
  if constexpr (!is_of_graph) {
    return act();
  } else {
    const auto lock = turn.all.graphs().lock();
    const CUresult result = act();
    if (purpose == CudaPurpose::Builds && result == CUDA_SUCCESS) note_graph_change(turn, arguments...);
    return result;
  }
}

// ---- What a launch gives its kernel ----

inline CUfunction function_among() { return nullptr; }
template <class First, class... Rest>
CUfunction function_among(First first, Rest... rest) {
  if constexpr (std::is_same_v<First, CUfunction>) {
    return first;
  } else {
    return function_among(rest...);
  }
}

/// The kernel's parameters and `extra`, as far as the call has them.
inline void arguments_among(void***) {}
template <class First, class... Rest>
void arguments_among(void*** next, First first, Rest... rest) {
  if constexpr (std::is_same_v<First, void**>) *next++ = first;
  arguments_among(next, rest...);
}

template <CudaPurpose purpose, class... Arguments>
bool may_launch(const Turn& turn, Arguments... arguments) {
  if constexpr (purpose == CudaPurpose::Launches && (std::is_same_v<Arguments, CUfunction> || ...)) {
    if (!turn.all.taken().any()) [[likely]]
      return true;
    if constexpr (!(std::is_same_v<Arguments, void**> || ...)) {
      turn.beware_of_addresses();  // they were set one by one before
      return true;
    } else {
      void** given[2] = {nullptr, nullptr};
      arguments_among(given, arguments...);
      return turn.all.may_launch(turn, function_among(arguments...), given[0], given[1]);
    }
  } else {
    return true;
  }
}

// ---- What a copy gives the GPU ----

template <CudaPurpose purpose, class... Rest>
bool may_copy(const Turn&, Rest...) {
  return true;
}
template <CudaPurpose purpose, class... Rest>
requires(purpose == CudaPurpose::Copies) bool may_copy(const Turn& turn, CUdeviceptr address,
                                                       const void* host, std::size_t size_bytes, Rest...) {
  return turn.all.may_copy(turn, address, host, size_bytes);
}
/// Of cuMemcpy(), which copies from wherever the address is.
template <CudaPurpose purpose, class... Rest>
requires(purpose == CudaPurpose::Copies) bool may_copy(const Turn& turn, CUdeviceptr address,
                                                       CUdeviceptr from, std::size_t size_bytes, Rest...) {
  if (from - window_begin < window_bytes) return true;  // the GPU's own memory
  return turn.all.may_copy(turn, address, reinterpret_cast<const void*>(from), size_bytes);
}

/// The first handle among a call's parameters whose object is followed.
inline Object* object_among(Objects&) { return nullptr; }
template <class First, class... Rest>
Object* object_among(Objects& objects, First first, Rest... rest) {
  if constexpr (Followed<First>) {
    return objects.find(FamilyOf<First>::value, number_of(first));
  } else {
    return object_among(objects, rest...);
  }
}

/// The first number among them that says what is set: an enumeration.
inline std::string setting_among() { return {}; }
template <class First, class... Rest>
std::string setting_among(First first, Rest... rest) {
  if constexpr (std::is_enum_v<First>) {
    return std::to_string(static_cast<int>(first));
  } else {
    return setting_among(rest...);
  }
}

/// All that they say, to compare with what was set before.
template <class... Values>
std::string bytes_of(Values... values) {
  static_assert((std::is_scalar_v<Values> && ...));
  std::string all;
  (all.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return all;
}

// ---- The end of an object ----

/// The program has ended it in the instance of its turn. It ends in the spare by `end_one`, once nobody who
/// makes or looks for objects there takes it for one any more.
template <class Handle, class EndOne>
void end_object(const Turn& turn, Object* object, const EndOne& end_one) {
  if (object == nullptr || !turn.objects.remove(*object)) return;
  const Instance* const receiver = turn.all.receiver();
  const std::uintptr_t there = receiver == nullptr ? 0 : object->in[receiver->slot()].load();
  turn.objects.give_place(*object);
  if (there == 0) return;
  turn.all.make_current(*receiver);
  end_one(receiver->driver(), reinterpret_cast<Handle>(there));
}

// ---- Our own functions ----

/// What one of them is given besides the function's own parameters.
struct OwnCall {
  VirtualProcess& all;
  bool per_thread = false;  ///< a stream that is null means the calling thread's own

  template <class Function>
  Function which(Function plain, Function own) const {
    return per_thread ? own : plain;
  }
};

// Those of the table's own way are declared in `own`, so that a function there needs its row.
#define VIRTUAL_SPACE_own ~, own
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...)                              \
  namespace CUDA_SECOND(CUDA_JOINED(VIRTUAL_SPACE_, VIRTUAL_WAY(symbol, purpose)), not_ours, ~) { \
    CUresult symbol(const OwnCall& call __VA_OPT__(, ) CUDA_PARAMETERS(__VA_ARGS__));             \
  }
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
#undef VIRTUAL_SPACE_own

namespace own {

/// NOT_INITIALIZED before cuInit, and in a child of fork(); else success.
CUresult initialised(const OwnCall& call);

/// Gives back what the program has freed during captures, where none is under way any more and the GPU has
/// nothing to do. It waits for nothing.
void take_up_put_off(const OwnCall& call, const Turn& turn);

}  // namespace own

/// All functions of the driver that the program sees: they need process().
const cuda::Backend& backend();

/// The same for who is asked for one by its name.
struct Stub {
  void* function = nullptr;
  void* per_thread = nullptr;  ///< behind its per-thread symbol, where it has one
};
/// One for each of abi::cuda_functions(), in their order.
std::span<const Stub> stubs_in_order();
/// What stands behind the driver's exported symbol; null: the driver has none of that name.
void* stub_of_symbol(std::string_view symbol);
/// What stands behind what cuGetProcAddress answers for `name`, at that CUDA version and with those flags.
void* stub_of_entry_point(std::string_view name, int cuda_version, std::uint64_t flags);

}  // namespace firebreak::virtual_driver
