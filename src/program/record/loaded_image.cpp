// SPDX-License-Identifier: Apache-2.0
#include "program/record/loaded_image.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "ground/os/self.h"

namespace firebreak::record {
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

LoadedCode LoadedImage::choose(const fatbin::TargetGpu& gpu) const {
  if (needs_linking_) return {};
  fatbin::ChosenCode chosen = fatbin::choose_code(bytes_, gpu);
  const bool is_kept = is_own_ && fatbin::kind_of_image(bytes_) == fatbin::ImageKind::Cubin;
  std::string beside = chosen.form == CodeForm::MachineCode ? fatbin::newest_ptx(bytes_, gpu) : std::string();
  return {chosen.form, is_kept ? std::string(bytes_) : std::move(chosen.ptx), std::move(beside)};
}

}  // namespace firebreak::record
