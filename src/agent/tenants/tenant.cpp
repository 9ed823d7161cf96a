// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/tenant.h"

#include <algorithm>
#include <utility>

#include "ground/os/memory.h"
#include "shared/abi/commit_journal.h"

namespace firebreak::agent {

Result<std::unique_ptr<Tenant>> Tenant::create(const std::string& name, std::uint64_t quota_bytes) {
  if (auto good = abi::check_name(name); !good) return propagate(good);
  auto fd = os::create_memory_file("firebreak-" + name, sizeof(abi::SharedMemory));
  if (!fd) return propagate(fd, "shared page");
  auto mapping = os::Mapping::of_file(fd->get(), sizeof(abi::SharedPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping, "shared page");
  auto* page = mapping->as<abi::SharedPage>();
  page->magic = abi::shared_page_magic;
  page->version = abi::shared_page_version;
  return std::unique_ptr<Tenant>(new Tenant(name, quota_bytes, std::move(*fd), std::move(*mapping)));
}

Result<std::unique_ptr<Tenant>> Tenant::restore(const std::string& name, std::uint64_t quota_bytes,
                                                os::Fd page) {
  if (auto good = abi::check_name(name); !good) return propagate(good);
  if (!os::has_fixed_size(page.get(), sizeof(abi::SharedMemory))) {
    return fail(ErrorCode::Protocol, "its shared page was not kept");
  }
  auto mapping = os::Mapping::of_file(page.get(), sizeof(abi::SharedPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping, "shared page");
  if (mapping->as<abi::SharedPage>()->version != abi::shared_page_version) {
    return fail(ErrorCode::Protocol, "its shared page is of another version");
  }
  return std::unique_ptr<Tenant>(new Tenant(name, quota_bytes, std::move(page), std::move(*mapping)));
}

std::uint64_t Tenant::committed() const {
  const abi::CommitArea* newest = newest_area(page());
  return newest != nullptr ? newest->next_step.load(std::memory_order_acquire) : 0;
}

std::optional<std::uint64_t> Tenant::progress() const {
  const abi::CommitArea* area = area_of(page(), pair.epoch);
  if (area == nullptr) return std::nullopt;
  const abi::Progress progress = abi::progress_of(*area);
  const bool has_heartbeats = area->heartbeats_queued.load(std::memory_order_relaxed) > 0;
  return has_heartbeats && progress.in_flight ? std::optional(progress.done) : std::nullopt;
}

bool Tenant::has_begun() const {
  const abi::CommitArea* area = area_of(page(), pair.epoch);
  return area != nullptr && (area->next_step.load(std::memory_order_acquire) > area->first_step.load() ||
                             area->heartbeats_done.load(std::memory_order_acquire) > 0);
}

bool Tenant::active_has_left() const {
  return std::ranges::any_of(page().areas, [this](const abi::CommitArea& area) {
    return area.left.load(std::memory_order_acquire) == std::uint64_t{pair.epoch} + 1;
  });
}

bool Tenant::take_hand_over(std::uint32_t number) {
  using Word = abi::HandOverWord;
  auto& word = page().hand_over;
  const std::uint64_t taken = Word{pair.epoch, number, Word::State::Taken}.raw();
  std::uint64_t there = Word{pair.epoch, number, Word::State::Offered}.raw();
  // Taken already: by an agent that was killed then.
  return word.compare_exchange_strong(there, taken, std::memory_order_acq_rel) || there == taken;
}

void Tenant::answered() {
  if (--awaited_answers_ > 0) return;
  for (const auto& each : std::exchange(put_off_, {})) each();
}

bool Tenant::put_off(std::function<void()> what) {
  if (awaited_answers_ == 0) return false;
  put_off_.push_back(std::move(what));
  return true;
}

void Tenant::promote(std::uint32_t epoch, std::int64_t now_ns) {
  page().decided_at_ns.store(now_ns, std::memory_order_relaxed);
  page().promoted.store(abi::Promoted{epoch, member_number(standby)}.raw(), std::memory_order_release);
  page().promotion.store(abi::PromotionWord{epoch, false}.raw(), std::memory_order_release);
  os::futex_wake(page().promotion);
}

void Tenant::take_turns() {
  old_active = std::move(active);
  active = std::exchange(standby, {});
}

std::uint32_t Tenant::promoted_epoch() const {
  return abi::PromotionWord::from(page().promotion.load(std::memory_order_acquire)).epoch;
}

bool Tenant::was_promoted(const Member& member, std::uint32_t epoch) const {
  const auto promoted = abi::Promoted::from(page().promoted.load(std::memory_order_acquire));
  return promoted_epoch() == epoch && promoted == abi::Promoted{epoch, member_number(member)};
}

void Tenant::begin_epoch(std::uint32_t epoch) {
  page().promotion.store(abi::PromotionWord{epoch, false}.raw(), std::memory_order_release);
}

void Tenant::say_whether_turns_are_given(bool are_given) {
  page().turn.heard.store(are_given ? 1 : 0, std::memory_order_release);
}

void Tenant::dismiss_standby() {
  page().promotion.store(abi::PromotionWord{pair.epoch, true}.raw(), std::memory_order_release);
  os::futex_wake(page().promotion);
}

}  // namespace firebreak::agent
