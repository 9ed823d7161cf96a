// SPDX-License-Identifier: Apache-2.0
/// The functions of the driver that the program sees, all of them made from the table of the driver's
/// functions and from ways.def.
#include <cstdio>

#include "ground/os/self.h"
#include "program/virtual/calls.h"
#include "program/virtual/inside_call.h"

namespace firebreak::virtual_driver {

NodeParams::NodeParams(const Turn& turn, CUgraphNodeParams* program) : program_(program) {
  if (program == nullptr) return;
  here_ = *program;
  const auto in = [&](auto& handle) { handle = turn.objects.translate(handle, turn.slot); };
  switch (here_.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      in(here_.kernel.func);
      in(here_.kernel.kern);
      in(here_.kernel.ctx);
      break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      in(here_.memcpy.copyCtx);
      here_.memcpy.copyParams = *static_cast<const CUDA_MEMCPY3D*>(Copy(turn, &program->memcpy.copyParams));
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      in(here_.memset.ctx);
      here_.memset.dst = turn.translate_for_use(here_.memset.dst);
      break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      in(here_.graph.graph);
      // The driver ends it, and the program may go on to use it.
      if (here_.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
        turn.all.stand_aside("it gives a graph away to another one");
      break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      in(here_.eventWait.event);
      break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      in(here_.eventRecord.event);
      break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      in(here_.memOp.ctx);
      turn.beware_of_addresses();
      break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      in(here_.conditional.ctx);
      break;
    default:
      break;
  }
}

/// Memory's address, or the graphs of a condition. The reading of the graph says that nobody makes them
/// again.
NodeParams::~NodeParams() {
  if (program_ == nullptr) return;
  if (here_.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) *program_ = here_;
  if (here_.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    program_->conditional.phGraph_out = here_.conditional.phGraph_out;
}

LaunchConfig::LaunchConfig(const Turn& turn, const CUlaunchConfig* program) : given_(program != nullptr) {
  if (!given_) return;
  config_ = *program;
  config_.hStream = turn.objects.translate(config_.hStream, turn.slot);
  if (program->attrs == nullptr) return;
  attributes_.assign(program->attrs, program->attrs + program->numAttrs);
  for (CUlaunchAttribute& attribute : attributes_) {
    // Both begin with their event.
    const bool has_event = attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
                           attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    CUevent& event = attribute.value.programmaticEvent.event;
    if (has_event) event = turn.objects.translate(event, turn.slot);
  }
  config_.attrs = attributes_.data();
}

namespace {

CUresult told(const char* symbol, CUresult result) {
  const bool is_error = result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY;
  if ((is_error && is_traced()) || trace() == Trace::Calls) [[unlikely]]
    std::fprintf(stderr, "firebreak: %s answers %d\n", symbol, static_cast<int>(result));
  return result;
}

/// The program gets its handle of what the call has made in the instance. The CUDA runtime asks for a
/// kernel's function at each launch: what is known already is not kept again.
template <class Handle, class Again>
CUresult made(const Turn& turn, CUresult result, std::uintptr_t own, Handle* program, const Again& again,
              Object* parent) {
  if (result != CUDA_SUCCESS) return result;
  constexpr Family family = FamilyOf<Handle>::value;
  Object* object = turn.objects.find_answered(family, own, turn.slot, parent);
  if (object == nullptr) {
    // A kernel is its library's, in every context.
    const std::uintptr_t context = std::is_same_v<Handle, CUkernel> ? 0 : current_context();
    std::vector<Object::Step> steps{{.key = {}, .again = again, .context = current_context()}};
    object = &turn.objects.add(family, own, turn.slot, std::move(steps), {parent, context});
    turn.all.something_new();
  }
  *program = (Handle)object->seen;  // NOLINT: handles are numbers, too
  return result;
}

template <class First, class... Rest>
auto* out_among(First first, Rest... rest) {
  if constexpr (std::is_pointer_v<First>) {
    if constexpr (Followed<std::remove_pointer_t<First>>) {
      return first;
    } else {
      return out_among(rest...);
    }
  } else {
    return out_among(rest...);
  }
}

// Whatever the parameters are called, `all`, `turn`, `making`, `here_`, `inside_` and `program_` are none of
// them.

#define VIRTUAL_DEFINE_passed(exported, symbol, is_per_thread, purpose, reason, ...)            \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                             \
    VirtualProcess& all = *process();                                                           \
    return all.call([&](const Turn& turn) {                                                     \
      if (!may_launch<CudaPurpose::purpose>(turn __VA_OPT__(, ) CUDA_ARGUMENTS(__VA_ARGS__)) || \
          !may_copy<CudaPurpose::purpose>(turn __VA_OPT__(, ) CUDA_ARGUMENTS(__VA_ARGS__)))     \
        return CUDA_ERROR_NOT_SUPPORTED;                                                        \
      return with_work<VIRTUAL_NOTE(symbol), CudaPurpose::purpose, is_per_thread>(turn, [&] {   \
        return with_graph<CudaPurpose::purpose>(turn, [&] {                                     \
          return turn.driver.exported(CUDA_EACH(VIRTUAL_GIVEN, __VA_ARGS__));                   \
        } __VA_OPT__(, ) CUDA_ARGUMENTS(__VA_ARGS__));                                          \
      } __VA_OPT__(, ) CUDA_ARGUMENTS(__VA_ARGS__));                                            \
    });                                                                                         \
  }

#define VIRTUAL_DEFINE_aside(exported, symbol, is_per_thread, purpose, reason, ...)                     \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                                     \
    VirtualProcess& all = *process();                                                                   \
    all.stand_aside(reason);                                                                            \
    return all.call(                                                                                    \
        [&](const Turn& turn) { return turn.driver.exported(CUDA_EACH(VIRTUAL_GIVEN, __VA_ARGS__)); }); \
  }

#define VIRTUAL_DEFINE_anchor(exported, symbol, is_per_thread, purpose, reason, ...) \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                  \
    return process()->own_driver().exported(CUDA_ARGUMENTS(__VA_ARGS__));            \
  }

#define VIRTUAL_DEFINE_own(exported, symbol, is_per_thread, purpose, reason, ...)                      \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                                    \
    return own::symbol(OwnCall{*process(), is_per_thread} __VA_OPT__(, ) CUDA_ARGUMENTS(__VA_ARGS__)); \
  }

#define VIRTUAL_DEFINE_again(exported, symbol, is_per_thread, purpose, reason, ...)                 \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                                 \
    VirtualProcess& all = *process();                                                               \
    auto* const program_ = out_among(CUDA_ARGUMENTS(__VA_ARGS__));                                  \
    if (program_ == nullptr) return CUDA_ERROR_INVALID_VALUE;                                       \
    return all.call([&](const Turn& turn) {                                                         \
      Making here_{turn.driver, turn.slot, turn.objects};                                           \
      const auto again_ = [CUDA_EACH(VIRTUAL_KEPT, __VA_ARGS__)](Making& making) {                  \
        return making.driver.exported(CUDA_EACH(VIRTUAL_GIVEN_AGAIN, __VA_ARGS__));                 \
      };                                                                                            \
      const CUresult result = again_(here_);                                                        \
      Object* const parent = object_among(turn.objects __VA_OPT__(, ) CUDA_ARGUMENTS(__VA_ARGS__)); \
      return made(turn, result, here_.made, program_, again_, parent);                              \
    });                                                                                             \
  }

#define VIRTUAL_DEFINE_sets(exported, symbol, is_per_thread, purpose, reason, ...)                        \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                                       \
    VirtualProcess& all = *process();                                                                     \
    return all.call([&](const Turn& turn) {                                                               \
      Making here_{turn.driver, turn.slot, turn.objects};                                                 \
      Object::Step step{.key = #symbol + setting_among(CUDA_ARGUMENTS(__VA_ARGS__)),                      \
                        .again =                                                                          \
                            [CUDA_EACH(VIRTUAL_KEPT, __VA_ARGS__)](Making& making) {                      \
                              return making.driver.exported(CUDA_EACH(VIRTUAL_GIVEN_AGAIN, __VA_ARGS__)); \
                            },                                                                            \
                        .context = current_context(),                                                     \
                        .value = bytes_of(CUDA_ARGUMENTS(__VA_ARGS__))};                                  \
      const CUresult result = step.again(here_);                                                          \
      Object* const object = object_among(turn.objects, CUDA_ARGUMENTS(__VA_ARGS__));                     \
      if (result == CUDA_SUCCESS && object != nullptr &&                                                  \
          turn.objects.add_step(*object, turn.slot, std::move(step)))                                     \
        all.something_new();                                                                              \
      return result;                                                                                      \
    });                                                                                                   \
  }

namespace ways {

#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...)                                    \
  CUDA_SYMBOLS(per_thread, CUDA_JOINED(VIRTUAL_DEFINE_, VIRTUAL_WAY(symbol, purpose)), symbol, purpose, \
               VIRTUAL_REASON(symbol, purpose), __VA_ARGS__)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION

}  // namespace ways

namespace stubs {

#define VIRTUAL_DEFINE_told(exported, symbol, is_per_thread, ...)        \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                      \
    const InsideCall inside_;                                            \
    return told(#exported, ways::exported(CUDA_ARGUMENTS(__VA_ARGS__))); \
  }
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  CUDA_SYMBOLS(per_thread, VIRTUAL_DEFINE_told, symbol, __VA_ARGS__)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION

}  // namespace stubs
}  // namespace

const cuda::Backend& backend() {
  static const cuda::Backend all = [] {
    cuda::Backend made{};
#define VIRTUAL_SET(exported, ...) made.exported = &stubs::exported;
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  CUDA_SYMBOLS(per_thread, VIRTUAL_SET, symbol)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
    return made;
  }();
  return all;
}

namespace {

template <class Function>
void* untyped(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* stub_of(const abi::CudaFunction& function, bool per_thread) {
  const Stub& stub = stubs_in_order()[static_cast<std::size_t>(&function - abi::cuda_functions().data())];
  return per_thread && stub.per_thread != nullptr ? stub.per_thread : stub.function;
}

}  // namespace

std::span<const Stub> stubs_in_order() {
#define VIRTUAL_ADDRESS(exported, ...) untyped(&stubs::exported),
  static const std::array all{
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  Stub{CUDA_SYMBOLS(per_thread, VIRTUAL_ADDRESS, symbol)},
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
  };
  return all;
}

void* stub_of_symbol(std::string_view symbol) {
  const abi::CudaFunction* function = abi::cuda_function_of_symbol(symbol);
  if (function != nullptr) return stub_of(*function, false);
  if (!symbol.ends_with("_ptsz") && !symbol.ends_with("_ptds")) return nullptr;
  function = abi::cuda_function_of_symbol(symbol.substr(0, symbol.size() - 5));
  return function == nullptr || function->per_thread_symbol != symbol ? nullptr : stub_of(*function, true);
}

void* stub_of_entry_point(std::string_view name, int cuda_version, std::uint64_t flags) {
  const abi::CudaFunction* const function = abi::cuda_function_at(name, cuda_version);
  if (function == nullptr) return nullptr;
  return stub_of(*function, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
}

}  // namespace firebreak::virtual_driver
