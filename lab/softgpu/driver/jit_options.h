// SPDX-License-Identifier: Apache-2.0
/// The options of cuModuleLoadDataEx that the software GPU heeds: the two logs.
#pragma once

#include <cstddef>
#include <string_view>

#include "shared/abi/cuda_driver.h"

namespace firebreak::softgpu::driver {

/// True when an image is PTX text rather than a cubin or a fat binary.
bool is_ptx(std::string_view image);
/// The same from its first bytes, before anybody looks for its end.
bool begins_like_text(const void* image);

/// Points into the program's arrays; used during one call.
class JitOptions {
 public:
  JitOptions(unsigned int count, const CUjit_option* options, void** values);
  /// Write a text, cut to the buffer and closed with NUL, and its size; nothing where the program gave no
  /// buffer.
  void write_error_log(std::string_view text) const;
  void write_info_log(std::string_view text) const;

 private:
  struct Log {
    char* buffer = nullptr;
    std::size_t size_bytes = 0;
    void** size_answer = nullptr;
  };
  static void write(const Log& log, std::string_view text);
  Log error_;
  Log info_;
};

}  // namespace firebreak::softgpu::driver
