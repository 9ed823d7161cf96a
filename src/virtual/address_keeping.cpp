// SPDX-License-Identifier: Apache-2.0
#include "virtual/address_keeping.h"

#include <sys/mman.h>

#include <atomic>
#include <charconv>

#include "virtual/addresses.h"

namespace firebreak::virtual_driver {
namespace {

constinit std::atomic<std::uint32_t> coming_up{0};

}  // namespace

ComingUp::ComingUp(std::uint32_t slot) { coming_up.store(slot, std::memory_order_release); }
ComingUp::~ComingUp() { coming_up.store(0, std::memory_order_release); }
std::uint32_t ComingUp::slot() { return coming_up.load(std::memory_order_acquire); }

bool is_placeholder(std::uint64_t address, int fd, int protection, int flags) {
  return fd == -1 && protection == PROT_NONE && (flags & MAP_FIXED) == 0 && is_in_window(address);
}

std::string socket_name(std::string_view asked_for) {
  constexpr std::string_view begin = "cuda-uvmfd-";
  std::string name(asked_for);
  const std::uint32_t slot = ComingUp::slot();
  if (slot != 0 && asked_for.starts_with(begin)) name += "-" + std::to_string(slot);
  return name;
}

std::string without_window(std::string_view maps) {
  std::string kept;
  kept.reserve(maps.size());
  while (!maps.empty()) {
    const std::size_t end = maps.find('\n');
    const std::string_view line = maps.substr(0, end == std::string_view::npos ? maps.size() : end + 1);
    std::uint64_t address = 0;
    std::from_chars(line.data(), line.data() + line.size(), address, 16);
    if (!is_in_window(address)) kept += line;
    maps.remove_prefix(line.size());
  }
  return kept;
}

}  // namespace firebreak::virtual_driver
