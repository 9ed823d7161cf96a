// SPDX-License-Identifier: Apache-2.0
#include "program/journal/payload_space.h"

#include <algorithm>

#include "ground/base/units.h"

namespace firebreak::journal {
namespace {

constexpr std::size_t cache_line_bytes = 64;

}  // namespace

std::optional<std::size_t> PayloadSpace::take(std::size_t bytes) {
  bytes = round_up(std::max<std::size_t>(bytes, 1), cache_line_bytes);
  const std::optional<std::size_t> begin = find(bytes);
  if (!begin) return begin;
  taken_.push_back({*begin, *begin + bytes});
  taken_bytes_ += bytes;
  return begin;
}

void PayloadSpace::give_back_oldest() {
  taken_bytes_ -= taken_.front().end - taken_.front().begin;
  taken_.pop_front();
}

void PayloadSpace::give_back_newest() {
  taken_bytes_ -= taken_.back().end - taken_.back().begin;
  taken_.pop_back();
}

std::optional<std::size_t> PayloadSpace::find(std::size_t bytes) const {
  const auto free_until = [bytes](std::size_t begin, std::size_t end) { return bytes <= end - begin; };
  if (taken_.empty()) return free_until(0, capacity_) ? std::optional<std::size_t>(0) : std::nullopt;
  const std::size_t oldest = taken_.front().begin;
  const std::size_t newest = taken_.back().end;
  // Around the end and back: what is free lies between the newest and the oldest.
  if (taken_.back().begin < oldest) return free_until(newest, oldest) ? std::optional(newest) : std::nullopt;
  const bool fits_before = free_until(0, oldest);
  if (fits_before && newest >= warm_bytes) return 0;
  if (free_until(newest, capacity_)) return newest;
  return fits_before ? std::optional<std::size_t>(0) : std::nullopt;
}

}  // namespace firebreak::journal
