// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/vault/vault.h"

#include <fmt/format.h>

#include <algorithm>

#include "ground/base/units.h"

namespace firebreak::vault {
namespace {

/// The driver's granularity for memory that can be exported, and the GPU's large page.
constexpr std::uint64_t granularity_bytes = 2 * mib;
/// One past the highest address that a GPU of today translates (57-bit virtual addresses on Hopper).
constexpr std::uint64_t address_end = std::uint64_t{1} << 57;

Status check_range(const Entry& entry) {
  if (entry.size_bytes == 0 || entry.size_bytes > address_end ||
      entry.address > address_end - entry.size_bytes) {
    return fail(ErrorCode::InvalidArgument, fmt::format("allocation '{}' has no sensible size", entry.name));
  }
  if (entry.address % granularity_bytes != 0 || entry.size_bytes % granularity_bytes != 0) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("allocation '{}' is not aligned to 2 MiB", entry.name));
  }
  return {};
}

bool overlap(const Entry& one, const Entry& other) {
  return one.address < other.address + other.size_bytes && other.address < one.address + one.size_bytes;
}

}  // namespace

Status Vault::add(Entry entry, std::uint64_t bytes_elsewhere) {
  if (!entry.descriptor && !entry.is_put_away) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("allocation '{}' came without a descriptor", entry.name));
  }
  if (auto checked = check_range(entry); !checked) return checked;
  if (entries_.size() >= entries_max) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("a tenant has at most {} allocations", entries_max));
  }
  const std::uint64_t used_bytes = total_bytes() + bytes_elsewhere;
  if (quota_bytes_ != 0 && used_bytes + entry.size_bytes > quota_bytes_) {
    return fail(
        ErrorCode::ResourceExhausted,
        fmt::format("allocation '{}' of {} MiB would go beyond the tenant's quota: {} of {} MiB are used",
                    entry.name, entry.size_bytes / mib, used_bytes / mib, quota_bytes_ / mib));
  }
  for (const Entry& other : entries_) {
    if (other.name == entry.name) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("the tenant already has an allocation '{}'", entry.name));
    }
    if (overlap(entry, other)) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("allocation '{}' overlaps '{}'", entry.name, other.name));
    }
  }
  if (entry.descriptor) ++descriptors_here_;
  entries_.push_back(std::move(entry));
  return {};
}

void Vault::put_away(std::string_view name) {
  const auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry == entries_.end()) return;
  if (entry->descriptor) --descriptors_here_;
  entry->descriptor.reset();
  entry->is_put_away = true;
}

void Vault::forget(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) {
    if (entry.name == name && entry.descriptor) --descriptors_here_;
    return entry.name == name;
  });
}

std::uint64_t Vault::total_bytes() const {
  std::uint64_t total = 0;
  for (const Entry& entry : entries_) total += entry.size_bytes;
  return total;
}

}  // namespace firebreak::vault
