// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/notes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "program/virtual/addresses.h"

namespace firebreak::virtual_driver {
namespace {

/// More is not kept.
constexpr std::size_t parameter_bytes_max = 4096;
using Packed = std::array<std::byte, parameter_bytes_max>;

/// Those of one launch, in `room` where they are not in one piece. Nothing: they are not known.
std::optional<std::span<const std::byte>> packed(const Turn& turn, CUfunction function, void** parameters,
                                                 void** extra, Packed& room) {
  if (parameters == nullptr) {
    if (extra == nullptr) return std::span<const std::byte>();
    return arguments_in_one_piece(extra);
  }
  const Object* const kernel = turn.objects.find(Family::Code, number_of(function));
  if (kernel == nullptr) return std::nullopt;
  const CUfunction own = turn.objects.translate(function, turn.slot);
  const auto* const layout = turn.all.arguments().layout_of(turn.driver, *kernel, own);
  return layout == nullptr ? std::nullopt : pack(*layout, parameters, room);
}

/// Of what is not pinned: whether it is the host's, so that it may be read here. The driver knows of what the
/// GPU has elsewhere, as variables.
bool is_plain_host(const Turn& turn, std::uint64_t address) {
  unsigned int type = 0;
  return address != 0 &&
         turn.driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS;
}

}  // namespace

bool is_harmless(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:  // of caches
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:  // of what fences wait for
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      return value.cooperative == 0;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return value.programmaticStreamSerializationAllowed == 0;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      return value.clusterDim.x <= 1 && value.clusterDim.y <= 1 && value.clusterDim.z <= 1;
    default:
      return false;
  }
}

void note_launch(const Turn& turn, GivenWork& given, const Work& work, const GivenLaunch& launch,
                 void** parameters, void** extra) {
  Packed room;
  const auto bytes =
      turn.all.taken().any() ? std::nullopt : packed(turn, launch.function, parameters, extra, room);
  if (!bytes) return given.unknown(work);
  given.launch(work, launch, *bytes);
}

void note_launch(const Turn& turn, GivenWork& given, const Work& work, const CUlaunchConfig& config,
                 CUfunction function, void** parameters, void** extra) {
  const std::span attributes(config.attrs, config.attrs == nullptr ? 0 : config.numAttrs);
  const auto matters = [](const CUlaunchAttribute& each) { return !is_harmless(each.id, each.value); };
  if (std::ranges::any_of(attributes, matters)) return given.unknown(work);
  const GivenLaunch launch{function,
                           {config.gridDimX, config.gridDimY, config.gridDimZ},
                           {config.blockDimX, config.blockDimY, config.blockDimZ},
                           config.sharedMemBytes};
  note_launch(turn, given, work, launch, parameters, extra);
}

void note_fill(GivenWork& given, const Work& work, const GivenArea& to, std::uint32_t value,
               std::uint32_t value_bytes) {
  if (!is_in_window(to.address)) return given.unknown(work, abi::RedoCause::HostMemory);
  given.fill(work, to, value, value_bytes);
}

/// Memory that is pinned stays as it is until the copy has ended, so it is read once more then. Other memory
/// the program may change as soon as the call has returned.
void note_copy(const Turn& turn, GivenWork& given, const Work& work, std::uint64_t to, std::uint64_t from,
               std::size_t size_bytes) {
  const bool is_to_host = !is_in_window(to);
  const bool is_from_host = !is_in_window(from);
  const bool is_pinned = (is_to_host && turn.all.memory().is_pinned(to, size_bytes)) ||
                         (is_from_host && turn.all.memory().is_pinned(from, size_bytes));
  if (is_to_host && is_from_host) return given.unknown(work, abi::RedoCause::HostMemory);
  if ((!is_to_host && !is_from_host) || is_pinned)
    return given.copy(work, one_row(to, size_bytes), one_row(from, size_bytes));
  if (is_to_host || size_bytes > abi::redo_payload_max || !is_plain_host(turn, from))
    return given.unknown(work, abi::RedoCause::HostMemory);
  given.upload(work, to, {reinterpret_cast<const std::byte*>(from), size_bytes});
}

/// It is noted before the driver has looked at it.
void note_upload(const Turn& turn, GivenWork& given, const Work& work, CUdeviceptr to, const void* from,
                 std::size_t size_bytes, bool may_change_first) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const bool is_host = turn.all.memory().is_pinned(address, size_bytes) || is_plain_host(turn, address);
  if (!is_in_window(to) || may_change_first || !is_host)
    return given.unknown(work, abi::RedoCause::HostMemory);
  given.upload(work, to, {static_cast<const std::byte*>(from), size_bytes});
}

}  // namespace firebreak::virtual_driver
