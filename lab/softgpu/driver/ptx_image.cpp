// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/ptx_image.h"

#include <utility>

#include "kernels/fatbin/image.h"
#include "softgpu/driver/device_attributes.h"
#include "softgpu/driver/jit_options.h"

namespace firebreak::softgpu::driver {
namespace {

Answer<std::string> newest_ptx(std::string_view image) {
  auto texts = fatbin::ptx_texts_in(image);
  if (!texts) return refuse(CUDA_ERROR_INVALID_IMAGE);
  constexpr unsigned newest = compute_capability_major * 10 + compute_capability_minor;
  fatbin::PtxText* chosen = nullptr;
  for (fatbin::PtxText& text : *texts) {
    if (text.arch <= newest && (chosen == nullptr || text.arch > chosen->arch)) chosen = &text;
  }
  if (chosen == nullptr) return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU);
  return std::move(chosen->text);
}

}  // namespace

Answer<std::string> ptx_of_image(const void* image) {
  const fatbin::Found found = fatbin::find_image(image);
  if (fatbin::kind_of_image(found.bytes) == fatbin::ImageKind::FatBinary) return newest_ptx(found.bytes);
  if (found.was_wrapped || !begins_like_text(image)) return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU);
  return std::string(static_cast<const char*>(image));
}

Answer<std::string> ptx_of_file(const std::string& content) {
  if (fatbin::kind_of_image(content) == fatbin::ImageKind::FatBinary) return newest_ptx(content);
  return content.substr(0, content.find('\0'));
}

}  // namespace firebreak::softgpu::driver
