// SPDX-License-Identifier: Apache-2.0
#include "agent/tenant.h"

#include "abi/commit_journal.h"
#include "os/futex.h"

namespace firebreak::agent {

Result<std::unique_ptr<Tenant>> Tenant::create(const std::string& name) {
  if (auto good = abi::check_name(name); !good) return propagate(good);
  auto fd = os::create_memory_file("firebreak-" + name, sizeof(abi::SharedMemory));
  if (!fd) return propagate(fd, "shared page");
  auto mapping = os::Mapping::of_file(fd->get(), sizeof(abi::SharedPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping, "shared page");
  auto* page = mapping->as<abi::SharedPage>();
  page->magic = abi::shared_page_magic;
  page->version = abi::shared_page_version;
  return std::unique_ptr<Tenant>(new Tenant(name, std::move(*fd), std::move(*mapping)));
}

std::uint64_t Tenant::committed(std::uint32_t epoch) const {
  return area_of(*mapping_.as<abi::SharedPage>(), epoch).next_step.load(std::memory_order_acquire);
}

std::optional<std::uint64_t> Tenant::progress() const {
  const abi::CommitArea& area = area_of(*mapping_.as<abi::SharedPage>(), pair.epoch);
  const abi::Progress progress = abi::progress_of(area);
  const bool has_heartbeats = area.beats_queued.load(std::memory_order_relaxed) > 0;
  return has_heartbeats && progress.in_flight ? std::optional(progress.done) : std::nullopt;
}

void Tenant::promote(std::uint32_t epoch, std::int64_t now_ns) {
  page().decided_at_ns.store(now_ns, std::memory_order_relaxed);
  page().promotion.store(abi::PromotionWord{epoch, false}.raw(), std::memory_order_release);
  os::futex_wake(page().promotion);
  old_active = active;
  active = standby;
  standby = {};
}

void Tenant::dismiss_standby() {
  page().promotion.store(abi::PromotionWord{pair.epoch, true}.raw(), std::memory_order_release);
  os::futex_wake(page().promotion);
}

}  // namespace firebreak::agent
