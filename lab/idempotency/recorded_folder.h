// SPDX-License-Identifier: Apache-2.0
/// What a program launched, as it was written down (program/record/launch_folder.h), and the PTX of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "kernels/access/launch.h"
#include "kernels/access/summary.h"
#include "kernels/ptx/ir.h"

namespace firebreak::idempotency {

/// One line, with what a decision borrows.
struct RecordedLaunch {
  std::string kernel;
  std::string image;
  std::string code;                   ///< "ptx", "machine code" or "unknown": what ran
  access::LaunchArguments arguments;  ///< the shape alone
  std::uint32_t shared_bytes = 0;
  std::vector<std::byte> parameters;
  std::vector<access::MemoryRange> memory;
  std::map<std::string, std::uint64_t> variables;
};

/// What PTX there is of an image.
struct RecordedImage {
  std::string problem;     ///< why nothing is known of it; empty: it was read
  bool is_beside = false;  ///< the PTX lies beside the machine code that ran
  std::string text;
  ptx::Module module;
  std::map<std::string, access::KernelSummary> summaries;
};

struct RecordedKernel {
  const RecordedImage* image = nullptr;
  const ptx::Function* function = nullptr;
  const access::KernelSummary* summary = nullptr;
  std::string problem;  ///< why there is none: then all above but the image are null
};

/// The images of one folder; each is read once.
class RecordedImages {
 public:
  explicit RecordedImages(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Lives as long as this does.
  RecordedKernel find(const RecordedLaunch& launch);

 private:
  RecordedImage& image_of(const RecordedLaunch& launch);

  const std::filesystem::path folder_;
  std::map<std::string, RecordedImage> images_;
};

/// The numbers of one process.
struct RecordedTotals {
  std::uint64_t launches = 0;
  std::uint64_t unrecorded = 0;
  std::uint64_t graph_launches = 0;
};

/// Told of each process, and of its distinct launches with how often each happened; nothing: a line that
/// cannot be read.
struct RecordedVisitor {
  std::function<void(const RecordedTotals&)> process;
  std::function<void(const std::optional<RecordedLaunch>&, std::uint64_t times)> launch;
};

/// NotFound: nothing was recorded there.
Status visit_recorded(const std::filesystem::path& folder, const RecordedVisitor& visitor);

/// By the kernel's variables: where they lay when it was launched; 0: not known.
std::vector<std::uint64_t> variable_addresses(const access::KernelSummary& summary,
                                              const std::map<std::string, std::uint64_t>& variables);

}  // namespace firebreak::idempotency
