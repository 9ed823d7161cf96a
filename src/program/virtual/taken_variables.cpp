// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/taken_variables.h"

#include <algorithm>
#include <cstring>

namespace firebreak::virtual_driver {

TakenVariable* TakenVariables::look_up(CUdeviceptr address) const {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (all_[i]->holds(address) && !all_[i]->is_gone()) return all_[i].get();
  }
  return nullptr;
}

CUdeviceptr TakenVariables::translate(CUdeviceptr address, Slot slot) const {
  const TakenVariable* const found = find(address);
  const CUdeviceptr there = found == nullptr ? 0 : found->in[slot].load(std::memory_order_acquire);
  return there == 0 ? address : there + (address - found->seen);
}

CUdeviceptr TakenVariables::seen_of(CUdeviceptr address, Slot slot) const {
  CUdeviceptr seen = address;
  for_each([&](const TakenVariable& each) {
    const CUdeviceptr begin = each.in[slot].load(std::memory_order_acquire);
    if (begin != 0 && address - begin < each.size_bytes) seen = each.seen + (address - begin);
  });
  return seen;
}

std::optional<CUdeviceptr> TakenVariables::take(Object& code, std::string_view name, CUdeviceptr address,
                                                std::size_t size_bytes, Slot slot) {
  const std::lock_guard lock(mutex_);
  bool is_free = true;
  std::optional<CUdeviceptr> before;
  for_each([&](TakenVariable& each) {
    if (each.code == &code && each.name == name) before = each.seen;
    is_free = is_free && (each.seen >= address + size_bytes || address >= each.seen + each.size_bytes);
  });
  if (before) return before;
  const std::size_t count = count_.load();
  if (!is_free || count == variables_max) return std::nullopt;
  auto taken = std::make_unique<TakenVariable>();
  taken->code = &code;
  taken->name = name;
  taken->seen = address;
  taken->size_bytes = size_bytes;
  taken->in[slot].store(address);
  all_[count] = std::move(taken);
  lowest_.store(std::min(lowest_.load(), address));
  end_.store(std::max(end_.load(), address + size_bytes));
  count_.store(count + 1, std::memory_order_release);
  return address;
}

CUdeviceptr TakenVariables::translate_for_use(CUdeviceptr address, Slot slot) {
  if (TakenVariable* const found = find(address); found != nullptr) found->is_unknown.store(true);
  return translate(address, slot);
}

void TakenVariables::wrote(CUdeviceptr address, const void* bytes, std::size_t size_bytes, bool is_done) {
  TakenVariable* const found = find(address);
  if (found == nullptr) return;
  const std::size_t offset = address - found->seen;
  // Beyond its end may be another one that is taken.
  if (!is_done || size_bytes > found->size_bytes - offset)
    return for_each([](TakenVariable& each) { each.is_unknown.store(true); });
  if (found->size_bytes > content_max_bytes) return found->is_unknown.store(true);
  const std::lock_guard lock(mutex_);
  found->content.resize(found->size_bytes);
  found->is_written.resize(found->size_bytes);
  std::memcpy(found->content.data() + offset, bytes, size_bytes);
  std::fill_n(found->is_written.begin() + static_cast<std::ptrdiff_t>(offset), size_bytes, true);
}

std::vector<TakenVariables::Run> TakenVariables::written_to(const TakenVariable& variable) {
  const std::lock_guard lock(mutex_);
  std::vector<Run> runs;
  for (std::size_t at = 0; at < variable.is_written.size(); ++at) {
    if (!variable.is_written[at]) continue;
    const bool goes_on = !runs.empty() && runs.back().offset_bytes + runs.back().bytes.size() == at;
    if (!goes_on) runs.push_back({at, {}});
    runs.back().bytes += variable.content[at];
  }
  return runs;
}

void TakenVariables::forget(Slot slot) {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) all_[i]->in[slot].store(0, std::memory_order_release);
}

void TakenVariables::for_each(const std::function<void(TakenVariable&)>& look) const {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (!all_[i]->is_gone()) look(*all_[i]);
  }
}

}  // namespace firebreak::virtual_driver
