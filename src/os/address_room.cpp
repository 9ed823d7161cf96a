// SPDX-License-Identifier: Apache-2.0
#include "os/address_room.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/units.h"
#include "os/memory.h"

namespace firebreak::os {

std::vector<AddressRange> room_to_grow() {
  constexpr std::uint64_t heap_room = 64 * gib;
  constexpr std::uint64_t least_stack_room = gib;
  constexpr std::uint64_t most_stack_room = 64 * gib;
  std::vector<AddressRange> rooms;
  const auto heap_end = reinterpret_cast<std::uint64_t>(::sbrk(0));
  rooms.push_back({heap_end, heap_end + heap_room});
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const std::uint64_t wanted = known ? std::uint64_t{limit.rlim_cur} : most_stack_room;
  // The environment's strings lie at the stack's upper end.
  const auto stack = reinterpret_cast<std::uint64_t>(environ == nullptr ? nullptr : *environ);
  const std::uint64_t room = std::clamp(wanted, least_stack_room, most_stack_room);
  if (stack > room) rooms.push_back({stack - room, stack});
  return rooms;
}

std::optional<std::uint64_t> address_space_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  std::uint64_t pages = 0;
  std::ifstream file("/proc/self/statm");
  if (!(file >> pages)) return 0;
  const std::uint64_t used = pages * page_size();
  return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

void release_range(AddressRange range) { ::munmap(reinterpret_cast<void*>(range.begin), range.size_bytes()); }

}  // namespace firebreak::os
