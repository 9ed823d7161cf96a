// SPDX-License-Identifier: Apache-2.0
#include "softgpu/devices/uvm_va_space.h"

#include "shared/abi/uvm_ranges.h"
#include "shared/abi/uvm_tools.h"
#include "softgpu/machine/device_uuid.h"
#include "softgpu/machine/uvm_ring.h"

namespace firebreak::softgpu {

namespace {

/// Answers with `action` on the VA space; a memory manager's descriptor is none.
template <class Argument, class Action>
bool answer(const os::Fd& fd, void* argument, const Action& action) {
  auto descriptor = UvmDescriptor::from(fd.get());
  if (!descriptor && descriptor.error().code != ErrorCode::PermissionDenied) return false;
  auto& range = *static_cast<Argument*>(argument);
  range.rm_status = descriptor ? action(*descriptor, range) : abi::nv_err_illegal_action;
  return true;
}

std::uint32_t create(UvmDescriptor& descriptor, const abi::UvmRange& range) {
  return descriptor.ranges().create_external(range.base, range.length, descriptor.managed_ranges());
}

bool is_ours(const DeviceUuid& uuid) {
  for (std::uint32_t gpu = 0; gpu < gpu_count_from_environment(); ++gpu) {
    if (uuid == device_uuid_of(gpu)) return true;
  }
  return false;
}

std::uint32_t map_sparse(UvmDescriptor& descriptor, const abi::UvmMapExternalSparse& range) {
  if (!is_ours(range.gpu_uuid)) return abi::nv_err_invalid_device;
  return descriptor.ranges().map_sparse(range.base, range.length);
}

std::uint32_t free(UvmDescriptor& descriptor, const abi::UvmRange& range) {
  return descriptor.ranges().free(range.base, range.length);
}

}  // namespace

bool request_uvm_range(const os::Fd& fd, unsigned long request, void* argument) {
  switch (request) {
    case abi::uvm_create_external_range:
      return answer<abi::UvmRange>(fd, argument, create);
    case abi::uvm_map_external_sparse:
      return answer<abi::UvmMapExternalSparse>(fd, argument, map_sparse);
    case abi::uvm_free:
      return answer<abi::UvmRange>(fd, argument, free);
    default:
      return false;
  }
}

}  // namespace firebreak::softgpu
