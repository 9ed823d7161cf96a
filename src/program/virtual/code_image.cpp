// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/code_image.h"

#include <algorithm>
#include <utility>

#include "ground/os/self.h"

namespace firebreak::virtual_driver {

fatbin::TargetGpu target_gpu(const cuda::Backend& driver) {
  int major = 0;
  int minor = 0;
  driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  // CUDA C++ Programming Guide, "CUDA Environment Variables".
  const bool may_prefer_ptx = os::environment_variable("CUDA_FORCE_PTX_JIT").has_value() ||
                              os::environment_variable("CUDA_FORCE_JIT").has_value();
  return {static_cast<unsigned>(major), static_cast<unsigned>(minor), may_prefer_ptx};
}

std::shared_ptr<CodeImage> CodeImage::of(const void* image, bool is_preserved) {
  const fatbin::Found found = fatbin::find_image(image);
  if (found.bytes.empty()) return nullptr;
  const bool stays = is_preserved || (found.was_wrapped &&
                                      os::is_constant_in_library(found.bytes.data(), found.bytes.size()));
  auto kept = stays ? std::make_shared<CodeImage>() : of_content(std::string(found.bytes));
  kept->needs_linking_ = found.needs_linking;
  if (!stays) return kept;
  kept->given_ = image;
  kept->bytes_ = found.bytes;
  return kept;
}

std::shared_ptr<CodeImage> CodeImage::of_content(std::string content) {
  auto kept = std::make_shared<CodeImage>();
  kept->copy_ = std::move(content);
  kept->given_ = kept->copy_.c_str();
  kept->bytes_ = kept->copy_;
  return kept;
}

void CodeImage::forget() {
  const std::lock_guard lock(mutex_);
  is_forgotten_ = true;
}

CodeState CodeImage::read(const fatbin::TargetGpu& gpu) const {
  const std::lock_guard lock(mutex_);
  if (is_forgotten_) return {};
  if (needs_linking_) return {{}, {}, fatbin::to_string(fatbin::Obstacle::NotLinked)};
  const fatbin::Code code = fatbin::code_of_image(bytes_, gpu);
  CodeState state;
  if (code.obstacle) state.why_unknown = fatbin::to_string(*code.obstacle);
  for (const fatbin::Variable& variable : code.variables) {
    if (variable.may_change()) state.variables.push_back(variable.name);
    if (!variable.is_literal) state.named.push_back(variable.name);
  }
  std::ranges::sort(state.named);
  return state;
}

std::optional<std::string> CodeImage::compiled_ptx(const fatbin::TargetGpu& gpu) const {
  const std::lock_guard lock(mutex_);
  if (is_forgotten_ || needs_linking_) return std::nullopt;
  fatbin::ChosenCode chosen = fatbin::choose_code(bytes_, gpu);
  if (chosen.form != fatbin::CodeForm::Ptx) return std::nullopt;
  return std::move(chosen.ptx);
}

}  // namespace firebreak::virtual_driver
