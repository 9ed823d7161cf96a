// SPDX-License-Identifier: Apache-2.0
#include "record/loaded_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "os/self.h"

namespace firebreak::record {
namespace {

std::string_view without_zeroes(std::string_view text) { return text.substr(0, text.find('\0')); }

}  // namespace

LoadedImage::LoadedImage(const void* image) {
  const fatbin::Found found = fatbin::find_image(image);
  needs_linking_ = found.needs_linking;
  is_own_ = !(found.was_wrapped && os::is_constant_in_library(found.bytes.data(), found.bytes.size()));
  if (is_own_) copy_ = found.bytes;
  bytes_ = is_own_ ? std::string_view(copy_) : found.bytes;
}

// FNV-1a.
std::string LoadedImage::name() const {
  if (bytes_.empty()) return {};
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325U;
  for (const char each : bytes_) hash = (hash ^ static_cast<unsigned char>(each)) * 0x0000'0100'0000'01B3U;
  return fmt::format("{:016x}-{}", hash, bytes_.size());
}

ChosenCode LoadedImage::choose(const fatbin::TargetGpu& gpu) const {
  if (needs_linking_) return {};
  const fatbin::ImageKind kind = fatbin::kind_of_image(bytes_);
  if (kind == fatbin::ImageKind::Ptx) return {CodeForm::Ptx, std::string(without_zeroes(bytes_))};
  if (kind == fatbin::ImageKind::Cubin)
    return {CodeForm::MachineCode, is_own_ ? std::string(bytes_) : std::string()};
  if (kind != fatbin::ImageKind::FatBinary) return {};
  const auto entries = fatbin::entries_of(bytes_);
  if (!entries) return {};
  const std::vector<const fatbin::CodeEntry*> taken = fatbin::candidates(*entries, gpu);
  const auto is_ptx = [](const fatbin::CodeEntry* entry) { return entry->kind == fatbin::CodeKind::Ptx; };
  if (taken.empty()) return {};
  if (!std::all_of(taken.begin(), taken.end(), is_ptx)) return {CodeForm::MachineCode, {}};
  const auto newest = std::max_element(taken.begin(), taken.end(),
                                       [](const auto* a, const auto* b) { return a->arch < b->arch; });
  const auto is_as_new = [&](const auto* entry) { return entry->arch == (*newest)->arch; };
  if (std::count_if(taken.begin(), taken.end(), is_as_new) != 1) return {};
  const auto unpacked = fatbin::unpack(**newest);
  if (!unpacked) return {};
  return {CodeForm::Ptx, std::string(without_zeroes(unpacked->bytes))};
}

}  // namespace firebreak::record
