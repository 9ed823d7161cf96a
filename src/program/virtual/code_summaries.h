// SPDX-License-Identifier: Apache-2.0
/// What is known of the kernels of the program's code. Made in the background once code is loaded: after a
/// fault nothing is read any more.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/access/summary.h"
#include "kernels/fatbin/image.h"
#include "program/virtual/code_image.h"

namespace firebreak::virtual_driver {

/// Thread safe.
class CodeSummaries {
 public:
  using Summary = std::shared_ptr<const access::KernelSummary>;

  /// Reads what has come since, but for what is too large to be read at all. False: there is more, for the
  /// next call: each takes some 100 ms. For one thread at a time; others may find meanwhile.
  bool read_new(const std::vector<std::shared_ptr<CodeImage>>& images, const fatbin::TargetGpu& gpu);
  /// Null: nothing is known of it, and `why` says for which reason.
  Summary find(const CodeImage* image, const std::string& kernel, const char*& why) const;

 private:
  struct Code {
    std::weak_ptr<CodeImage> image;  ///< gone: another one may have come to its address
    bool is_too_large = false;
    std::map<std::string, Summary> kernels;
  };
  bool is_read(const std::shared_ptr<CodeImage>& image) const;
  void forget_gone();
  static Code read(const std::shared_ptr<CodeImage>& image, const std::string& text);

  mutable std::mutex mutex_;
  std::map<const CodeImage*, Code> code_;
};

}  // namespace firebreak::virtual_driver
