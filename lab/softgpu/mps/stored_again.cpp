// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mps/stored_again.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ground/os/addresses.h"
#include "ground/os/descriptors.h"
#include "ground/os/file.h"
#include "ground/os/processes.h"

namespace firebreak::softgpu::mps {
namespace {

/// This reads that file by one of the process's descriptors.
os::Fd open_from(os::Kernel& kernel, pid_t pid, const os::FileIdentity& file) {
  os::Fd found;
  static_cast<void>(os::visit_descriptors(kernel, pid, [&](int number, const std::string& target) {
    if (!target.starts_with("/memfd:")) return true;
    auto opened = kernel.open(os::proc_folder(pid) + "/fd/" + std::to_string(number), O_RDWR);
    if (opened && os::identity_of(opened->get()).value_or(os::FileIdentity{}) == file)
      found = std::move(*opened);
    return !found;
  }));
  return found;
}

/// Everything lies in a child where it lay in its parent.
std::vector<StoredAgain> stores_in(os::Kernel& kernel, pid_t child,
                                   const std::vector<std::uint64_t>& addresses) {
  std::vector<StoredAgain> stores;
  const auto regions = os::memory_map(child);
  if (!regions) return stores;
  for (const std::uint64_t address : addresses) {
    const auto region = std::ranges::find_if(*regions, [address](const os::MappedRegion& each) {
      return address >= each.begin && address < each.end;
    });
    if (region == regions->end() || region->file == os::FileIdentity{}) continue;
    StoredAgain store{
        open_from(kernel, child, region->file), region->offset_bytes + (address - region->begin), {}};
    if (!store.memory) continue;
    const ssize_t read = ::pread(store.memory.get(), store.value.data(), store.value.size(),
                                 static_cast<off_t>(store.offset_bytes));
    if (read == static_cast<ssize_t>(store.value.size())) stores.push_back(std::move(store));
  }
  return stores;
}

}  // namespace

std::vector<StoredAgain> stores_of(os::Kernel& kernel, const RmClient& client) {
  const std::vector<std::uint64_t> addresses = client.stores();
  if (addresses.empty()) return {};
  for (const pid_t child : client.children()) {
    auto stores = stores_in(kernel, child, addresses);
    if (!stores.empty()) return stores;
  }
  return {};
}

void store_again(const std::vector<StoredAgain>& stores) {
  for (const StoredAgain& store : stores) {
    // Memory that cannot be written is not seen: the memory's own end is as good.
    [[maybe_unused]] const ssize_t written = ::pwrite(
        store.memory.get(), store.value.data(), store.value.size(), static_cast<off_t>(store.offset_bytes));
  }
}

}  // namespace firebreak::softgpu::mps
