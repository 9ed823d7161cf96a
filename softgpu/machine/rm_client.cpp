// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/rm_client.h"

#include <utility>

#include "os/self.h"

namespace firebreak::softgpu {

namespace {
constexpr std::uint32_t rm_magic = 0x4c434d52;  // "RMCL"
}

Result<RmClient> RmClient::create(std::optional<Nanoseconds> orphaned_work) {
  auto fd = os::create_memory_file(memfd_name, sizeof(RmClientPage));
  if (!fd) return propagate(fd);
  auto mapping = os::Mapping::of_file(fd->get(), sizeof(RmClientPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  RmClient client(std::move(*fd), std::move(*mapping));
  client.page_->owner_pid.store(os::own_pid());
  client.page_->orphaned_work_is_endless.store(orphaned_work ? 0 : 1);
  client.page_->orphaned_work_ns.store(orphaned_work ? orphaned_work->count() : 0);
  client.page_->magic.store(rm_magic);
  return client;
}

Result<RmClient> RmClient::from(int fd) {
  const auto size_bytes = os::file_size(fd);
  if (!size_bytes || *size_bytes != sizeof(RmClientPage) || !os::has_fixed_size(fd)) {
    return fail(ErrorCode::InvalidArgument, "not a descriptor of the resource manager");
  }
  auto mapping = os::Mapping::of_file(fd, sizeof(RmClientPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  RmClient client({}, std::move(*mapping));
  if (client.page_->magic.load() != rm_magic) {
    return fail(ErrorCode::InvalidArgument, "not a descriptor of the resource manager");
  }
  return client;
}

std::optional<Nanoseconds> RmClient::orphaned_work() const {
  if (page_->orphaned_work_is_endless.load() != 0) return std::nullopt;
  return Nanoseconds(page_->orphaned_work_ns.load());
}

}  // namespace firebreak::softgpu
