// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/strays/sparse_cover.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ground/os/address_set.h"
#include "ground/os/descriptors.h"
#include "shared/abi/uvm_ranges.h"
#include "shared/abi/uvm_tools.h"

namespace firebreak::strays {
namespace {

constexpr const char* guard_library = "libfirebreak-guard.so";
constexpr std::uint64_t alignment_bytes = abi::uvm_sparse_alignment_bytes;

/// Returns the process's addresses, with room around them.
os::AddressSet with_room(const std::vector<os::MappedRegion>& mapped, const SparseOptions& options) {
  os::AddressSet taken;
  for (const os::MappedRegion& region : mapped) {
    taken.add({region.begin - std::min(region.begin, alignment_bytes),
               region.end + std::min(options.room_to_grow_bytes, ~std::uint64_t{0} - region.end)});
  }
  return taken;
}

template <class Argument>
std::uint32_t request(os::Kernel& kernel, const os::Fd& fd, unsigned long number, Argument& argument) {
  const Status done = kernel.ioctl(fd, number, &argument);
  return done ? argument.rm_status : abi::nv_err_illegal_action;
}

std::uint32_t free_range(os::Kernel& kernel, const os::Fd& fd, os::AddressRange range) {
  abi::UvmRange argument{range.begin, range.size_bytes(), 0, 0};
  return request(kernel, fd, abi::uvm_free, argument);
}

std::uint32_t create_range(os::Kernel& kernel, const os::Fd& fd, os::AddressRange range) {
  abi::UvmRange argument{range.begin, range.size_bytes(), 0, 0};
  return request(kernel, fd, abi::uvm_create_external_range, argument);
}

std::string reason_of(std::uint32_t status) {
  switch (status) {
    case abi::nv_err_uvm_address_in_use:
      return "UVM has something there";
    case abi::nv_err_invalid_device:
      return "the process uses no GPU";
    default:
      return fmt::format("UVM's status {}", status);
  }
}

}  // namespace

std::string describe(const SparseReport& report) {
  const std::string covered =
      fmt::format("{} MiB of unused low addresses swallow strays", report.covered_bytes / mib);
  if (report.reason.empty()) return covered;
  return fmt::format("{}; {} MiB do not: {}", covered, report.refused_bytes / mib, report.reason);
}

std::vector<os::AddressRange> plan_sparse(const std::vector<os::MappedRegion>& mapped,
                                          const SparseOptions& options) {
  std::vector<os::AddressRange> pieces;
  // Nothing can be sparse at address 0.
  for (const os::AddressRange& hole :
       with_room(mapped, options).missing_of({alignment_bytes, options.low_end})) {
    const std::uint64_t last = hole.end / alignment_bytes * alignment_bytes;
    for (std::uint64_t begin = round_up(hole.begin, alignment_bytes); begin < last;) {
      const std::uint64_t end = std::min(last, (begin / options.piece_bytes + 1) * options.piece_bytes);
      pieces.push_back({begin, end});
      begin = end;
    }
  }
  return pieces;
}

Result<os::Fd> SparseCover::va_space_of(pid_t pid) {
  const auto process = kernel_.pidfd_open(pid);
  if (!process) return propagate(process);
  Result<os::Fd> found = fail(ErrorCode::NotFound, "the process has no VA space");
  std::size_t closer = 0;
  const auto visited = os::visit_first_descriptors(kernel_, pid, [&](int number, const std::string& target) {
    if (target != kernel_.uvm_link_target()) return true;
    if (++closer > os::most_closer_looks) return false;
    auto duplicate = kernel_.pidfd_getfd(*process, number, target);
    // A process has two: the one without a VA space refuses whatever is asked, as here what is no range.
    const bool refuses = duplicate && free_range(kernel_, *duplicate, {}) == abi::nv_err_illegal_action;
    if (!refuses) found = std::move(duplicate);
    return refuses;
  });
  if (!visited) return propagate(visited);
  return found;
}

void SparseCover::cover(pid_t pid) {
  works_.erase(pid);
  const auto maps = kernel_.read_memory_file("/proc/" + std::to_string(pid) + "/maps");
  if (!maps) return finish(pid, {0, 0, maps.error().message});
  if (maps->find(guard_library) != std::string::npos) return;
  auto va_space = va_space_of(pid);
  if (!va_space) return finish(pid, {0, 0, va_space.error().message});
  Work& work = works_[pid];
  work.va_space = std::move(*va_space);
  work.left = plan_sparse(os::parse_memory_map(*maps), options_);
  std::ranges::reverse(work.left);  // taken from the back
  work.retry = options_.first_retry;
  step(pid);
}

std::uint32_t SparseCover::map_on_all_gpus(const os::Fd& va_space, os::AddressRange range) {
  const auto gpus = kernel_.gpu_uuids();
  std::uint32_t answer = abi::nv_err_invalid_device;
  for (const auto& uuid : gpus ? *gpus : std::vector<os::Kernel::GpuUuid>()) {
    abi::UvmMapExternalSparse argument{range.begin, range.size_bytes(), uuid, 0, 0};
    const std::uint32_t status = request(kernel_, va_space, abi::uvm_map_external_sparse, argument);
    if (status == abi::nv_err_invalid_device) continue;  // a GPU that this process does not use
    answer = status;
    if (status != abi::nv_ok) break;
  }
  return answer;
}

std::uint32_t SparseCover::make_sparse(const os::Fd& va_space, os::AddressRange range) {
  if (const auto created = create_range(kernel_, va_space, range); created != abi::nv_ok) return created;
  const std::uint32_t mapped = map_on_all_gpus(va_space, range);
  if (mapped != abi::nv_ok) (void)free_range(kernel_, va_space, range);
  return mapped;
}

void SparseCover::step(pid_t pid) {
  const auto found = works_.find(pid);
  if (found == works_.end()) return;
  Work& work = found->second;
  if (work.left.empty()) return finish(pid, std::exchange(work.report, {}));
  const os::AddressRange piece = work.left.back();
  const std::uint32_t status = make_sparse(work.va_space, piece);
  if (status == abi::nv_err_invalid_device && ++work.tries < options_.tries_max) {
    step_later(pid, work, work.retry);
    work.retry *= 2;
    return;
  }
  work.left.pop_back();
  if (status == abi::nv_ok) {
    work.report.covered_bytes += piece.size_bytes();
  } else {
    work.report.refused_bytes += piece.size_bytes();
    work.report.reason = reason_of(status);
  }
  step_later(pid, work, options_.pause);
}

void SparseCover::step_later(pid_t pid, Work& work, Nanoseconds pause) {
  auto timer = loop_.after(pause, [this, pid] { step(pid); });
  if (!timer) return finish(pid, {work.report.covered_bytes, 0, timer.error().message});
  work.next = std::move(*timer);
}

void SparseCover::finish(pid_t pid, SparseReport report) {
  works_.erase(pid);
  if (on_done_) on_done_(pid, report);
}

}  // namespace firebreak::strays
