// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/uvm_ring.h"

#include <algorithm>
#include <utility>

#include "ground/os/self.h"

namespace firebreak::softgpu {

namespace {
constexpr std::uint32_t uvm_magic = 0x464d5655;  // "UVMF"
}

UvmDescriptor::UvmDescriptor(os::Fd fd, os::FileIdentity file, os::Mapping mapping)
    : fd_(std::move(fd)), file_(file), mapping_(std::move(mapping)), page_(mapping_.as<UvmPage>()) {}

Result<UvmDescriptor> UvmDescriptor::create() {
  auto fd = os::create_memory_file(memfd_name, sizeof(UvmPage));
  if (!fd) return propagate(fd);
  const auto file = os::identity_of(fd->get());
  if (!file) return propagate(file);
  if (const Status locked = os::lock_while_open(fd->get()); !locked) return propagate(locked);
  auto mapping = os::Mapping::of_file(fd->get(), sizeof(UvmPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  UvmDescriptor descriptor(std::move(*fd), *file, std::move(*mapping));
  descriptor.page_->owner_pid.store(os::own_pid());
  descriptor.page_->ranges.initialise();
  descriptor.page_->magic.store(uvm_magic);
  return descriptor;
}

Result<UvmDescriptor> UvmDescriptor::from(int fd) {
  if (!os::has_fixed_size(fd, sizeof(UvmPage)))
    return fail(ErrorCode::InvalidArgument, "not a UVM descriptor");
  const auto file = os::identity_of(fd);
  if (!file) return propagate(file);
  // Opened anew: whoever reads along does not keep the address space.
  const auto again = os::reopen(fd);
  if (!again) return propagate(again);
  auto mapping = os::Mapping::of_file(again->get(), sizeof(UvmPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  UvmDescriptor descriptor({}, *file, std::move(*mapping));
  if (descriptor.page_->magic.load() != uvm_magic) {
    return fail(ErrorCode::InvalidArgument, "not a UVM descriptor");
  }
  return descriptor;
}

void UvmDescriptor::post(const UvmPageFault& event) {
  page_->ring.post(event);
  page_->wake.wake_all();
}

std::vector<AddressSpan> UvmDescriptor::managed_ranges() const { return mapped_ranges(false); }

std::vector<AddressSpan> UvmDescriptor::ranges_open_to_cpu() const { return mapped_ranges(true); }

bool UvmDescriptor::has_managed_range_in(const AddressSpan& span) const {
  const auto regions = os::memory_map_within(page_->owner_pid.load(), span.begin, span.end);
  return regions &&
         std::ranges::any_of(*regions, [this](const os::MappedRegion& each) { return is_managed(each); });
}

bool UvmDescriptor::is_managed(const os::MappedRegion& region) const {
  return region.file == file_ && region.offset_bytes == region.begin;
}

std::vector<AddressSpan> UvmDescriptor::mapped_ranges(bool only_writable) const {
  std::vector<AddressSpan> ranges;
  const auto regions = os::memory_map(page_->owner_pid.load());
  if (!regions) return ranges;
  for (const os::MappedRegion& region : *regions) {
    if (!is_managed(region)) continue;
    if (only_writable && !region.writable) continue;
    if (!ranges.empty() && ranges.back().end == region.begin) {
      ranges.back().end = region.end;
    } else {
      ranges.push_back({region.begin, region.end});
    }
  }
  return ranges;
}

Result<os::Fd> create_memory_manager_descriptor() {
  const auto file = os::create_memory_file(UvmDescriptor::memfd_name, sizeof(UvmPage));
  if (!file) return propagate(file);
  return os::reopen_for_writing_only(file->get());
}

}  // namespace firebreak::softgpu
