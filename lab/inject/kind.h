// SPDX-License-Identifier: Apache-2.0
/// Faults on purpose: what a kind of fault is, and a prepared one that is raised when told.
///
/// Most kinds end the process that raises them, at most also the other clients of its MPS server. Faults of
/// the device itself exist on the software GPU alone and are refused elsewhere. What a kind is expected to do
/// was measured on one H100 (driver 580.159.04), or stands in for a measurement where it says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/faults/fault/fault.h"
#include "ground/base/result.h"
#include "program/cuda/context.h"
#include "shared/abi/cuda_driver.h"

namespace firebreak::inject {

/// Outcome of raising a fault, in the process that raised it.
struct RaisedFault {
  std::int64_t launched_at_ns = 0;   ///< CLOCK_MONOTONIC, just before the faulting work was let go
  std::int64_t answered_at_ns = 0;   ///< CLOCK_MONOTONIC, when the driver answered
  CUresult answered = CUDA_SUCCESS;  ///< the call's answer
  std::string error_name;            ///< its name, "CUDA_ERROR_ILLEGAL_ADDRESS"
};

/// Everything allocated and loaded, nothing faulted yet. Use it on the thread that prepared it, with its
/// context current. Destroying it without raising it is harmless.
class Injection {
 public:
  virtual ~Injection() = default;
  /// Raises the fault and waits for the driver's answer; once. Later calls of the process answer the same
  /// error.
  virtual RaisedFault raise() = 0;
};

using Prepared = Result<std::unique_ptr<Injection>>;

/// How a process ends while its kernel runs.
enum class Ending {
  Kill,               ///< SIGKILL
  Terminate,          ///< SIGTERM, not handled
  SegmentationFault,  ///< SIGSEGV, not handled
  Exit,               ///< exit(), which also runs what libraries left for it
  Exec,               ///< the process goes on as another program, for a second
};

/// Options that the caller may or must add.
struct Options {
  /// Target of stray accesses; default_stray_address when empty.
  std::optional<CUdeviceptr> stray_address;
  /// Ends the calling process, and returns only where that failed. Only termination kinds want it.
  std::function<void(Ending)> end_process;
  /// The moment when they end it: this share, 0 to 1, of the time that the kernel takes by itself.
  double end_after_share = 0;
};

/// A pointer cut to 32 bits: where strays of programs that confuse integers and pointers land.
inline constexpr CUdeviceptr truncated_stray_address = 0xdead'0000;
/// The address that no allocator of the driver or of Linux hands out by itself, far from all that the guard
/// covers.
inline constexpr CUdeviceptr default_stray_address = 0x7000'dead'0000;

/// Fate of a kind where the faulter runs under the guard (src/program/guard), on the stock driver.
enum class UnderGuard {
  TheSame,                ///< the guard ranges do not reach it
  Contained,              ///< serviced and told: nobody sees an error
  ContainedWithPageZero,  ///< the same, where the process may map page 0 (CAP_SYS_RAWIO)
};

/// Describes what the stock driver does about a fault of a kind.
struct Expectation {
  /// The CUDA error in the faulter; CUDA_SUCCESS where it does not live to see one.
  CUresult faulter = CUDA_SUCCESS;
  /// The CUDA error in the other clients of its MPS server; CUDA_SUCCESS where they live.
  CUresult co_client = CUDA_SUCCESS;
  /// The CUDA error in everybody else on the GPU; CUDA_SUCCESS where they live: always, but for device
  /// faults.
  CUresult outsider = CUDA_SUCCESS;
  /// The CUDA error that some runs show in place of either; CUDA_SUCCESS: none. After an SM exception one
  /// process or another sees CUDA_ERROR_LAUNCH_FAILED in one run of ten (results/h100/characterization.json).
  CUresult sometimes = CUDA_SUCCESS;
  /// The Xids in the kernel log, in the order in which each first shows.
  std::span<const int> xids;
  /// The source outside of the process that knows first; empty where none does, because the hardware lets it
  /// pass.
  std::optional<fault::FaultSource> first_seen_by = fault::FaultSource::Xid;
  /// False: nobody looked yet, and this is what the nearest kind does that was measured.
  bool measured = true;
  /// Measured too (results/h100/containment.json).
  UnderGuard under_guard = UnderGuard::TheSame;
};

/// One kind of fault; all are rows of the tables in */kinds.cpp.
struct Kind {
  std::string_view name;     ///< "unmapped-store"
  std::string_view summary;  ///< one line, for a list
  fault::FaultClass fault_class = fault::FaultClass::Unknown;
  Expectation expectation;
  std::string_view ptx;  ///< PTX of its kernel; empty where the fault needs none
  /// Makes `context` current and prepares the fault there. Unsupported: this device cannot have this fault.
  Prepared (*prepare)(const cuda::Driver& driver, const cuda::ContextView& context,
                      const Options& options) = nullptr;
};

/// False where the hardware is expected to let it pass.
constexpr bool is_fault(const Kind& kind) { return kind.expectation.first_seen_by.has_value(); }

/// Why a play that shows one rogue and those who survive it cannot have this kind; empty where it can.
std::string_view why_not_demonstrable(const Kind& kind);
inline bool is_demonstrable(const Kind& kind) { return why_not_demonstrable(kind).empty(); }

/// Sets of Xids that recur.
inline constexpr int mmu_xids[] = {31};
inline constexpr int sm_xids[] = {13, 43};
inline constexpr int trap_xids[] = {43};

}  // namespace firebreak::inject
