// SPDX-License-Identifier: Apache-2.0
/// What a program has loaded as code, for as long as an instance may load it again or somebody may read it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/fatbin/image.h"
#include "program/cuda/backend.h"

namespace firebreak::virtual_driver {

/// The first device, and whether the program's environment has the driver prefer PTX there.
fatbin::TargetGpu target_gpu(const cuda::Backend& driver);

/// What is kept of the code between two launches.
struct CodeState {
  std::vector<std::string> variables;  ///< those that kernels may change
  std::vector<std::string> named;      ///< all that the program may ask for by their names; sorted
  const char* why_unknown = nullptr;   ///< a literal; null: these are all
};

/// Thread safe.
///
/// The bytes stay where the program has them, and are not copied, in two cases: the caller has said that they
/// stay (CU_LIBRARY_BINARY_IS_PRESERVED), or nvcc has wrapped them and they are in the read-only part of a
/// program's or library's file. What nvcc adds to that file unloads the code before the file goes. Both end
/// when the program unloads the code: forget() then waits for whoever reads it.
class CodeImage {
 public:
  /// Null: its length is not known.
  static std::shared_ptr<CodeImage> of(const void* image, bool is_preserved);
  /// A file's content.
  static std::shared_ptr<CodeImage> of_content(std::string content);

  /// Runs `use` with what a driver is to be given. The answer is empty where the program has unloaded it.
  template <class Use>
  auto use(const Use& use) const -> std::optional<decltype(use(nullptr))> {
    const std::lock_guard lock(mutex_);
    if (is_forgotten_) return std::nullopt;
    return use(given_);
  }
  /// The program has unloaded it, and may take its bytes away.
  void forget();

  /// What it keeps when that GPU runs it. Takes a second for some hundred MB.
  CodeState read(const fatbin::TargetGpu& gpu) const;

  /// The PTX that the driver compiles for that GPU. Nothing: it takes machine code, or it is not certain, or
  /// the program has unloaded it.
  std::optional<std::string> compiled_ptx(const fatbin::TargetGpu& gpu) const;

  bool is_copy() const { return !copy_.empty(); }

 private:
  mutable std::mutex mutex_;  ///< the last one that a thread takes
  bool is_forgotten_ = false;
  std::string copy_;
  const void* given_ = nullptr;  ///< the program's own, or the copy
  std::string_view bytes_;       ///< without what is around them
  bool needs_linking_ = false;
};

}  // namespace firebreak::virtual_driver
