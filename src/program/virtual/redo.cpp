// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/redo.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/access/describe.h"
#include "kernels/access/effects.h"
#include "kernels/access/hazard.h"
#include "kernels/regions/area.h"
#include "kernels/regions/region_builder.h"
#include "program/redo/redo_decision.h"
#include "program/virtual/addresses.h"

namespace firebreak::virtual_driver {
namespace {

using abi::RedoKind;

constexpr std::uint64_t nothing_is_saved = 0;

regions::Area area_of(const GivenArea& given) {
  return {given.address, given.width_bytes, given.pitch_bytes, given.rows};
}

/// The host's: the GPU's code that may be done again does not reach it.
bool is_of_host(const GivenArea& area) { return !is_in_window(area.address); }

/// A launch's memory is what we have mapped: whatever else it reaches makes it unknown.
void append(std::vector<access::MemoryRange>& all, const std::vector<WindowMemory::Range>& ranges) {
  for (const WindowMemory::Range& range : ranges) all.push_back({range.begin, range.size_bytes, range.begin});
}

/// Empty: it does not break the region.
std::string break_in(const regions::RegionAnswer& answer) {
  using regions::RegionPlace;
  const bool is_alone = answer.placement == RegionPlace::Alone;
  const bool is_first = answer.reason == regions::BreakReason::First;
  if (!is_alone && (is_first || answer.placement == RegionPlace::Continues)) return {};
  return regions::describe(is_alone ? answer.alone_reason : answer.reason, answer);
}

}  // namespace

/// All that is checked together.
struct Redo::Checked {
  const Instance& to;
  std::vector<access::MemoryRange> memory;          ///< that kernels may use
  std::vector<access::MemoryRange> memory_to_copy;  ///< and what the host has pinned
  regions::RegionBuilder region{nothing_is_saved};
};

// ---- What a kernel does ----

/// Null: nothing is known of it, for that reason. `name`: as far as that is.
CodeSummaries::Summary Redo::summary_of(std::uint64_t kernel, const Instance& to, std::string& name,
                                        const char*& why) {
  why = "its code is not known as PTX";
  const Object* const object = objects_.find(Family::Code, kernel);
  if (object == nullptr) return nullptr;
  const std::uintptr_t own = object->in[to.slot()].load();
  const char* its_name = nullptr;
  const bool is_named =
      to.driver().cuFuncGetName(&its_name, reinterpret_cast<CUfunction>(own)) == CUDA_SUCCESS ||
      to.driver().cuKernelGetName(&its_name, reinterpret_cast<CUkernel>(own)) == CUDA_SUCCESS;
  if (!is_named || its_name == nullptr) return nullptr;
  name = its_name;
  const Object* holder = object;
  while (holder->family == Family::Code && holder->origin.parent != nullptr) holder = holder->origin.parent;
  const auto image = objects_.code_of(*holder);
  return image == nullptr ? nullptr : code_.find(image.get(), name, why);
}

// ---- What was given ----

std::span<const Redo::Operation> Redo::operations_of(const redo::RedoLog& log, const redo::RedoEntry& entry,
                                                     const Instance& to) {
  operations_.clear();
  if (entry.kind != RedoKind::Graph) {
    operations_.push_back({entry.kind, entry.cause, entry.body, log.payload(entry)});
    return operations_;
  }
  const auto content = [&] {
    const auto lock = graphs_.lock();
    return graphs_.launched(entry.body.graph.content);
  }();
  if (content == nullptr) {
    operations_.push_back({RedoKind::CannotRedo, abi::RedoCause::Unknown, {}, {}});
    return operations_;
  }
  of_graph_ = virtual_driver::operations_of(*content, to.driver(), to.slot(), arguments_);
  for (const GraphOperation& each : of_graph_)
    operations_.push_back({each.kind, each.cause, each.body, each.payload});
  return operations_;
}

/// What it writes there nobody reads before the program knows that it has ended.
bool Redo::is_to_host(const Operation& operation) {
  const abi::RedoCopy& copy = operation.body.copy;
  return operation.kind == RedoKind::Copy && is_of_host(copy.to) && !is_of_host(copy.from);
}

bool Redo::is_from_host(const Operation& operation) {
  return operation.kind == RedoKind::Copy && is_of_host(operation.body.copy.from);
}

// ---- Whether it may all be done again ----

std::string Redo::check_launch(const Operation& operation, bool has_ended, Checked& checked) {
  std::string name = "a kernel";
  const abi::RedoLaunch& given = operation.body.launch;
  const char* why = nullptr;
  const CodeSummaries::Summary summary = summary_of(given.kernel, checked.to, name, why);
  if (summary == nullptr) return name + ": " + why;
  access::LaunchArguments launch;
  std::ranges::copy(given.grid, launch.grid.begin());
  std::ranges::copy(given.block, launch.block.begin());
  launch.parameters = operation.payload;
  launch.memory = checked.memory;
  const std::string hazard = has_ended ? "" : access::find_hazard(*summary, launch, workspace_);
  if (!hazard.empty()) return name + ": " + hazard;
  const access::OperationEffects effects = access::find_effects(*summary, launch, workspace_);
  const std::string broken = break_in(checked.region.add(effects, checked.memory));
  if (broken.empty()) return {};
  const bool is_known = effects.decision.verdict == access::Verdict::Idempotent;
  return name + ": " + (is_known ? broken : access::describe(*summary, effects.decision));
}

/// `has_ended`: it cannot have been what ended the domain.
std::string Redo::check(const Operation& operation, bool has_ended, Checked& checked) {
  const auto add = [&](const char* what, const access::OperationEffects& effects) {
    const std::string broken = break_in(checked.region.add(effects, checked.memory_to_copy));
    return broken.empty() ? broken : what + broken;
  };
  const abi::RedoBody& body = operation.body;
  switch (operation.kind) {
    case RedoKind::Launch:
      return check_launch(operation, has_ended, checked);
    case RedoKind::Copy:
      return add("a copy: ", regions::copy_effects(area_of(body.copy.to), area_of(body.copy.from),
                                                   checked.memory_to_copy));
    case RedoKind::Fill:
      if (is_of_host(body.fill.to)) return {};  // a marker
      return add("a fill: ", regions::fill_effects(area_of(body.fill.to), checked.memory));
    case RedoKind::Upload:
      return add("a copy from the host: ", regions::fill_effects(area_of(body.upload.to), checked.memory));
    case RedoKind::EventRecord:
      return {};
    case RedoKind::CannotRedo:
      return redo::to_string(operation.cause);
    default:
      return "something that is not known here";
  }
}

/// Of a copy to the host that is not done again. What it has read does not matter, and what it wrote is
/// there.
std::string Redo::check_written(const GivenArea& to, Checked& checked) {
  access::OperationEffects effects = regions::fill_effects(area_of(to), checked.memory_to_copy);
  effects.certain_writes.clear();
  const std::string broken = break_in(checked.region.add(effects, checked.memory_to_copy));
  return broken.empty() ? broken : "a copy to the host that has ended: " + broken;
}

std::string Redo::find_obstacle(const GivenWork::UnderWay& work, const Instance& to) {
  // What is in its place may look like it.
  for (const GivenWork::UnderWay::Entry& each : work.entries)
    if (work.log.entries[each.index].cause == abi::RedoCause::GivenBack)
      return redo::to_string(abi::RedoCause::GivenBack);
  Checked checked{.to = to, .memory = {}, .memory_to_copy = {}};
  append(checked.memory, memory_.all());
  append(checked.memory, mappings_.all_own());
  std::ranges::sort(checked.memory, {}, &access::MemoryRange::address);
  checked.memory_to_copy = checked.memory;
  append(checked.memory_to_copy, memory_.hosts());
  // What comes after all that may have begun is given to a GPU for the first time.
  const auto is_in_doubt = [&](const GivenWork::UnderWay::Entry& each) {
    return each.may_have_begun && work.log.entries[each.index].kind != RedoKind::EventRecord;
  };
  const auto last = std::ranges::find_if(work.entries.rbegin(), work.entries.rend(), is_in_doubt);
  const auto doubtful = static_cast<std::size_t>(work.entries.rend() - last);
  for (std::size_t i = 0; i < work.entries.size(); ++i) {
    const GivenWork::UnderWay::Entry& each = work.entries[i];
    const redo::RedoEntry& entry = work.log.entries[each.index];
    for (const Operation& operation : operations_of(work.log, entry, to)) {
      if (i >= doubtful && operation.kind != RedoKind::CannotRedo) continue;
      if (each.has_ended && is_to_host(operation)) {
        const std::string broken = check_written(operation.body.copy.to, checked);
        if (!broken.empty()) return broken;
        continue;
      }
      if (each.may_be_seen && is_to_host(operation))
        return "a copy to the host that the program may have seen";
      if (each.may_be_seen && is_from_host(operation))
        return "a copy from the host's memory, which the program may have changed since";
      std::string obstacle = check(operation, each.has_ended, checked);
      if (!obstacle.empty()) return obstacle;
    }
  }
  return checked.region.depends_on_order() ? "what it computes depends on the order of threads" : "";
}

// ---- Once more ----

namespace {

CUresult copy_rows(const cuda::Backend& driver, const GivenArea& to, const GivenArea& from) {
  for (std::uint64_t row = 0; row < to.rows; ++row) {
    const CUdeviceptr target = to.address + row * to.pitch_bytes;
    const CUdeviceptr source = from.address + row * from.pitch_bytes;
    const CUresult copied =
        is_of_host(to)
            ? driver.cuMemcpyDtoHAsync_v2(reinterpret_cast<void*>(target), source, to.width_bytes, nullptr)
        : is_of_host(from) ? driver.cuMemcpyHtoDAsync_v2(target, reinterpret_cast<const void*>(source),
                                                         to.width_bytes, nullptr)
                           : driver.cuMemcpyDtoDAsync_v2(target, source, to.width_bytes, nullptr);
    if (copied != CUDA_SUCCESS) return copied;
  }
  return CUDA_SUCCESS;
}

CUresult fill_rows(const cuda::Backend& driver, const abi::RedoFill& fill) {
  const auto& [to, value, value_bytes] = fill;
  if (is_of_host(to)) return driver.cuStreamWriteValue32_v2(nullptr, to.address, value, 0);
  const std::size_t count = to.width_bytes / value_bytes;
  const bool is_one = to.rows == 1;
  switch (value_bytes) {
    case 1:
      return is_one ? driver.cuMemsetD8Async(to.address, static_cast<unsigned char>(value), count, nullptr)
                    : driver.cuMemsetD2D8Async(to.address, to.pitch_bytes, static_cast<unsigned char>(value),
                                               count, to.rows, nullptr);
    case 2:
      return is_one ? driver.cuMemsetD16Async(to.address, static_cast<unsigned short>(value), count, nullptr)
                    : driver.cuMemsetD2D16Async(to.address, to.pitch_bytes,
                                                static_cast<unsigned short>(value), count, to.rows, nullptr);
    default:
      return is_one ? driver.cuMemsetD32Async(to.address, value, count, nullptr)
                    : driver.cuMemsetD2D32Async(to.address, to.pitch_bytes, value, count, to.rows, nullptr);
  }
}

}  // namespace

CUresult Redo::give(const Operation& operation, const Instance& to) {
  const cuda::Backend& driver = to.driver();
  const abi::RedoBody& body = operation.body;
  const std::span<const std::byte> payload = operation.payload;
  switch (operation.kind) {
    case RedoKind::Launch: {
      const abi::RedoLaunch& launch = body.launch;
      const CUfunction own = objects_.translate(reinterpret_cast<CUfunction>(launch.kernel), to.slot());
      std::size_t size_bytes = payload.size();
      std::array<void*, 5> extra{reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT),
                                 const_cast<std::byte*>(payload.data()),
                                 reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size_bytes,
                                 reinterpret_cast<void*>(CU_LAUNCH_PARAM_END_AS_INT)};
      return driver.cuLaunchKernel(own, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                                   launch.block[1], launch.block[2], launch.shared_bytes, nullptr, nullptr,
                                   payload.empty() ? nullptr : extra.data());
    }
    case RedoKind::Copy:
      return copy_rows(driver, body.copy.to, body.copy.from);
    case RedoKind::Fill:
      return fill_rows(driver, body.fill);
    case RedoKind::Upload:
      return driver.cuMemcpyHtoD_v2(body.upload.to.address, payload.data(), payload.size());
    default:
      return CUDA_SUCCESS;
  }
}

CUresult Redo::give_again(const GivenWork::UnderWay& work, const Instance& to) {
  CUresult given = to.driver().cuCtxSetCurrent(to.primary());
  for (const GivenWork::UnderWay::Entry& each : work.entries) {
    for (const Operation& operation : operations_of(work.log, work.log.entries[each.index], to)) {
      if (each.has_ended && is_to_host(operation)) continue;
      if (given == CUDA_SUCCESS) given = give(operation, to);
    }
  }
  return given;
}

}  // namespace firebreak::virtual_driver
