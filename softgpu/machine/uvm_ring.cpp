// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/uvm_ring.h"

#include <utility>

namespace firebreak::softgpu {

namespace {
constexpr std::uint32_t uvm_magic = 0x464d5655;  // "UVMF"
}

UvmDescriptor::UvmDescriptor(os::Fd fd, os::Mapping mapping)
    : fd_(std::move(fd)), mapping_(std::move(mapping)), page_(mapping_.as<UvmPage>()) {}

Result<UvmDescriptor> UvmDescriptor::create(UvmDescriptorKind kind) {
  auto fd = os::create_memory_file(memfd_name, sizeof(UvmPage));
  if (!fd) return propagate(fd);
  auto mapping = os::Mapping::of_file(fd->get(), sizeof(UvmPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  UvmDescriptor descriptor(std::move(*fd), std::move(*mapping));
  descriptor.page_->descriptor_kind.store(static_cast<std::uint32_t>(kind));
  descriptor.page_->magic.store(uvm_magic);
  return descriptor;
}

Result<UvmDescriptor> UvmDescriptor::from(int fd) {
  const auto size_bytes = os::file_size(fd);
  if (!size_bytes || *size_bytes != sizeof(UvmPage) || !os::has_fixed_size(fd))
    return fail(ErrorCode::InvalidArgument, "not a UVM descriptor");
  auto mapping = os::Mapping::of_file(fd, sizeof(UvmPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  UvmDescriptor descriptor({}, std::move(*mapping));
  if (descriptor.page_->magic.load() != uvm_magic) {
    return fail(ErrorCode::InvalidArgument, "not a UVM descriptor");
  }
  return descriptor;
}

UvmDescriptorKind UvmDescriptor::kind() const {
  return static_cast<UvmDescriptorKind>(page_->descriptor_kind.load());
}

void UvmDescriptor::post(const UvmFatalFault& event) {
  page_->ring.post(event);
  page_->wake.wake_all();
}

}  // namespace firebreak::softgpu
