// SPDX-License-Identifier: Apache-2.0
/// Recorded launches once more, on a GPU, with memory that is made up: traced, torn and done again.
///
/// The third oracle: what is said of a launch is compared with what the GPU did.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ground/base/result.h"
#include "idempotency/recorded_folder.h"
#include "idempotency/truth.h"
#include "kernels/access/decision.h"

namespace firebreak::idempotency {

struct ReplayOptions {
  std::string cuda_library;                             ///< as for cuda::Driver::open
  std::uint64_t most_records = std::uint64_t{1} << 21;  ///< of one launch; of longer ones the first
  std::uint64_t most_memory_bytes = std::uint64_t{3} << 30;
  int tears = 3;  ///< of a launch that is called idempotent
};

/// What the memory of a launch was filled with. Made-up numbers lead some kernels out of their memory.
enum class MadeUpData : std::uint8_t { Numbers, SmallNumbers, Zeroes };
const char* to_string(MadeUpData data);

struct ReplayReport {
  std::string left_out;  ///< why it was not played; empty: it was
  access::Decision decision;
  std::string cause;  ///< cause_of the decision
  MadeUpData data = MadeUpData::Numbers;
  std::uint64_t access_count = 0;
  bool is_whole = false;  ///< all accesses were recorded; else nothing is known of the truth
  TraceTruth truth;
  bool leaves_to_chance = false;  ///< two whole runs of it may differ, or did: it is not torn
  int redo_count = 0;             ///< torn runs that were done again, all equal unless there is a problem
  std::string problem;            ///< what must not be; empty: all is well
};

/// For one thread. After an error of the code Device or Timeout the process has no GPU any more.
class Replayer {
 public:
  static Result<std::unique_ptr<Replayer>> open(const ReplayOptions& options);
  virtual ~Replayer() = default;

  /// `kernel`: of that launch, without a problem. `first`: the data that are tried first.
  virtual Result<ReplayReport> play(const RecordedLaunch& launch, const RecordedKernel& kernel,
                                    MadeUpData first) = 0;
};

struct ReplayPart {
  std::uint64_t part = 0;  ///< kernels are dealt out to so many
  std::uint64_t parts = 1;
  std::uint64_t begin = 0;                      ///< number of the first launch
  MadeUpData first_data = MadeUpData::Numbers;  ///< of that launch: others have ended the process
};
/// Prints a line of JSON before each launch ({"begin": number}) and one after it. Launches are numbered as
/// they lie in the folder.
Status replay_recorded(const std::string& folder, const ReplayOptions& options, const ReplayPart& part);

}  // namespace firebreak::idempotency
