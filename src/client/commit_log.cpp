// SPDX-License-Identifier: Apache-2.0
#include "client/commit_log.h"

#include <fmt/format.h>

namespace firebreak::client {
namespace {

/// The last commit of the active of `epoch`, if it is whole. A copy is checked, not the original: a fenced
/// process that is still running may write there.
bool read_whole(const abi::CommitArea& area, std::uint32_t epoch, Recovered& into) {
  const std::uint64_t next_step = area.next_step.load(std::memory_order_acquire);
  if (next_step == 0) return false;
  const abi::CommitSlot slot = area.slots[(next_step - 1) % abi::commit_slots];
  if (!abi::commit_is_valid(slot, epoch, next_step - 1)) return false;
  into.next_step = next_step;
  into.state.assign(slot.state, slot.state + slot.size_bytes);
  return true;
}

}  // namespace

Result<Recovered> recover(const abi::SharedPage& page, std::uint32_t epoch) {
  Recovered found;
  if (epoch == 0) return found;
  const abi::CommitArea& predecessor = page.areas[(epoch - 1) % 2];
  if (read_whole(predecessor, epoch - 1, found)) return found;
  if (epoch >= 2 && read_whole(page.areas[epoch % 2], epoch - 2, found)) return found;
  if (predecessor.next_step.load(std::memory_order_acquire) == 0) return found;
  return fail(ErrorCode::Protocol, fmt::format("step {} was committed, but its forward state is not whole",
                                               predecessor.next_step.load(std::memory_order_acquire) - 1));
}

void adopt(abi::SharedPage& page, std::uint32_t epoch, const Recovered& recovered) {
  abi::CommitArea& area = area_of(page, epoch);
  if (recovered.next_step > 0) {
    const std::uint64_t step = recovered.next_step - 1;
    abi::write_commit(area.slots[step % abi::commit_slots], epoch, step, recovered.state);
  }
  area.queued_step.store(recovered.next_step, std::memory_order_relaxed);
  area.beats_queued.store(0, std::memory_order_relaxed);
  area.beats_done.store(0, std::memory_order_relaxed);
  area.next_step.store(recovered.next_step, std::memory_order_release);
}

}  // namespace firebreak::client
