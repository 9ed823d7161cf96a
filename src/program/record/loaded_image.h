// SPDX-License-Identifier: Apache-2.0
/// The code that a program has loaded, and what of it its GPU runs.
#pragma once

#include <string>
#include <string_view>

#include "kernels/fatbin/image.h"

namespace firebreak::record {

using fatbin::CodeForm;

/// What the driver takes of an image.
struct LoadedCode {
  CodeForm form = CodeForm::Unknown;
  std::string text;  ///< PTX; else what was loaded, if the program made it itself
  /// Of machine code out of a fat binary: the newest PTX beside it that the GPU could take, of the same
  /// source.
  std::string beside;
};

/// One image, from when it is loaded.
class LoadedImage {
 public:
  /// Bytes that may not stay where they are are copied.
  explicit LoadedImage(const void* image);
  /// A file's content.
  explicit LoadedImage(std::string content) : copy_(std::move(content)), bytes_(copy_), is_own_(true) {}
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  /// The same for the same bytes; empty: they are not known.
  std::string name() const;
  /// Takes machine code for that GPU if there is some, else the newest PTX that the GPU takes.
  LoadedCode choose(const fatbin::TargetGpu& gpu) const;

 private:
  std::string copy_;
  std::string_view bytes_;
  bool is_own_ = false;  ///< no part of a program's or library's file
  bool needs_linking_ = false;
};

}  // namespace firebreak::record
