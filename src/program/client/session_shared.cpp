// SPDX-License-Identifier: Apache-2.0
/// Memory that several tenants map: made by one of them, at addresses that the agent gives.
#include <fmt/format.h>

#include <utility>

#include "ground/os/descriptors.h"
#include "program/client/session.h"
#include "program/cuda/context.h"

namespace firebreak::client {
namespace {

constexpr const char* agent_is_older = "the firebreak agent is older than this program, and shares no memory";

}  // namespace

Outcome<void> Session::reserve_shared() {
  if (shared_arena_) return {};
  auto arena = cuda::AddressReservation::reserve_at(*driver_, shared_base_, shared_bytes_);
  if (!arena) return cuda_failure(arena.error());
  shared_arena_.emplace(std::move(*arena));
  return {};
}

Outcome<std::uint64_t> Session::create_shared(const std::string& name, std::uint64_t size_bytes) {
  if (!can_share()) return failure(FB_ERROR_REFUSED, agent_is_older);
  const auto device = current_device();
  if (!device) return tl::unexpected(device.error());
  if (auto reserved = reserve_shared(); !reserved) return tl::unexpected(reserved.error());
  auto made = GpuMemory::make(*device, size_bytes);
  if (!made) return cuda_failure(made.error());
  unplaced_.emplace(name, Unplaced{size_bytes, std::move(*made)});
  return publish_shared(name);
}

/// The agent may have it or not where no answer comes, as of other memory.
Outcome<std::uint64_t> Session::publish_shared(const std::string& name) {
  const auto device = current_device();
  if (!device) return tl::unexpected(device.error());
  const Unplaced& offered = unplaced_.at(name);
  const auto answer = link_->ask(abi::Publish{name, 0, offered.size_bytes, abi::Memory::Shared},
                                 offered.made.descriptor.get());
  if (!answer) {
    if (answer.error().code != ErrorCode::Timeout) unplaced_.erase(name);
    return agent_failure(answer.error());
  }
  const auto* const placed = std::get_if<abi::Allocation>(&answer->message);
  if (placed == nullptr) return failure(FB_ERROR_CORRUPT, "the agent did not say where the memory is to lie");
  auto memory = GpuMemory::map_zeroed(*device, placed->address, offered.made);
  if (!memory) return cuda_failure(memory.error());
  const auto known = allocations_.emplace(name, std::move(*memory)).first;
  unplaced_.erase(name);
  may_write_shared_ = true;
  return known->second.address();
}

/// Waits for what this process wrote: nobody gets half of it.
Outcome<void> Session::share() {
  if (role_ != FB_ROLE_ACTIVE) return failure(FB_ERROR_INVALID_ARGUMENT, "only an active shares");
  if (fenced()) return failure(FB_ERROR_FENCED, "another process is active now");
  if (!can_share()) return failure(FB_ERROR_REFUSED, agent_is_older);
  if (may_write_shared_) {
    auto context = cuda::ContextView::current(*driver_);
    if (!context) return cuda_failure(context.error());
    if (auto idle = context->synchronize(); !idle) return cuda_failure(idle.error());
  }
  const auto answer = link_->ask(abi::Share{has_asked_to_share_});
  has_asked_to_share_ = !answer && answer.error().code == ErrorCode::Timeout;
  if (!answer) return agent_failure(answer.error());
  return {};
}

Outcome<std::uint64_t> Session::map_shared(const std::string& owner, const std::string& name,
                                           Milliseconds timeout) {
  for (const std::string& each : {owner, name}) {
    if (auto good = abi::check_name(each); !good)
      return failure(FB_ERROR_INVALID_ARGUMENT, to_string(good.error()));
  }
  if (!can_share()) return failure(FB_ERROR_REFUSED, agent_is_older);
  const bool is_own = owner == tenant_;
  const auto own = allocations_.find(name);
  if (is_own && own != allocations_.end()) return own->second.address();
  if (const auto known = of_others_.find({owner, name}); known != of_others_.end())
    return known->second.address();
  if (fenced()) return failure(FB_ERROR_FENCED, "another process is active now");
  if (auto room = os::make_room_for_descriptors(descriptors_of_an_allocation); !room)
    return failure(FB_ERROR_NO_MEMORY, fmt::format("'{}' of {}: {}", name, owner, to_string(room.error())));
  const auto shared = link_->take_shared(owner, name, timeout);
  if (!shared) return agent_failure(shared.error());
  if (is_own) return import(name, *shared);
  auto memory = import_memory(*shared);
  if (!memory) return tl::unexpected(std::move(memory.error()));
  return of_others_.emplace(std::pair(owner, name), std::move(*memory)).first->second.address();
}

}  // namespace firebreak::client
