// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/jit_options.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>

namespace firebreak::softgpu::driver {

bool begins_like_text(const void* image) {
  const auto first = *static_cast<const unsigned char*>(image);
  return first == 0 || (first < 0x7f && (std::isprint(first) != 0 || std::isspace(first) != 0));
}

bool is_ptx(std::string_view image) { return image.empty() || begins_like_text(image.data()); }

JitOptions::JitOptions(unsigned int count, const CUjit_option* options, void** values) {
  for (unsigned int index = 0; index < count; ++index) {
    const auto number = reinterpret_cast<std::uintptr_t>(values[index]);
    switch (options[index]) {
      case CU_JIT_ERROR_LOG_BUFFER:
        error_.buffer = static_cast<char*>(values[index]);
        break;
      case CU_JIT_INFO_LOG_BUFFER:
        info_.buffer = static_cast<char*>(values[index]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_.size_bytes = number & 0xffffffff;
        error_.size_answer = &values[index];
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.size_bytes = number & 0xffffffff;
        info_.size_answer = &values[index];
        break;
      default:
        break;  // tuning: nothing that the interpreter could heed
    }
  }
}

void JitOptions::write(const Log& log, std::string_view text) {
  if (log.buffer == nullptr || log.size_bytes == 0) return;
  const std::size_t count = std::min(text.size(), log.size_bytes - 1);
  std::memcpy(log.buffer, text.data(), count);
  log.buffer[count] = '\0';
  if (log.size_answer != nullptr)
    *log.size_answer = reinterpret_cast<void*>(static_cast<std::uintptr_t>(count));
}

void JitOptions::write_error_log(std::string_view text) const { write(error_, text); }
void JitOptions::write_info_log(std::string_view text) const { write(info_, text); }

}  // namespace firebreak::softgpu::driver
