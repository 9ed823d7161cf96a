// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/core_dump_lines.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <string_view>

#include "os/self.h"
#include "softgpu/environment.h"

namespace firebreak::softgpu::driver {
namespace {

struct ExceptionName {
  const char* text;
  int number;
};

ExceptionName name_of(GpuFaultKind kind) {
  switch (kind) {
    case GpuFaultKind::MisalignedAddress:
      return {"WARP_MISALIGNED_ADDRESS", 6};
    case GpuFaultKind::UnmappedAccess:
    case GpuFaultKind::ReadOnlyViolation:
      return {"WARP_ILLEGAL_ADDRESS", 14};
    case GpuFaultKind::InstructionFetch:
      return {"WARP_INVALID_PC", 8};
    case GpuFaultKind::OutOfRangeAddress:
    case GpuFaultKind::SharedOutOfBounds:
    case GpuFaultKind::LocalOutOfBounds:
      return {"WARP_OUT_OF_RANGE_ADDRESS", 5};
    case GpuFaultKind::StackOverflow:
      return {"LANE_USER_STACK_OVERFLOW", 2};
    case GpuFaultKind::IllegalInstruction:
    case GpuFaultKind::Trap:
    case GpuFaultKind::Breakpoint:
      return {"WARP_ILLEGAL_INSTRUCTION", 4};
  }
  return {"UNKNOWN", -1};
}

/// The warp of a store has gone on, and out, when the memory answers.
bool warp_has_left(const GpuFault& fault) {
  const bool store = fault.access == GpuAccess::Store || fault.access == GpuAccess::Atomic;
  return store &&
         (fault.kind == GpuFaultKind::UnmappedAccess || fault.kind == GpuFaultKind::ReadOnlyViolation);
}

}  // namespace

bool core_dump_lines_wanted() {
  return os::environment_variable(environment::core_dump_on_exception) == "1" &&
         os::environment_variable(environment::core_dump_progress) == "1";
}

std::string core_dump_lines(const GpuFault& fault) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count() % 1'000'000;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const std::string head = fmt::format("[{:%H:%M:%S}.{:06}] coredump: ", fmt::localtime(seconds), us);
  const std::string warp = warp_has_left(fault) ? "exception was detected after the warp has exited" : "0";
  const ExceptionName name = name_of(fault.kind);
  const std::uint64_t program_counter = 0x7f0000000000 + std::uint64_t{fault.ptx_line} * 16;
  std::string lines;
  for (const std::string& line :
       {fmt::format("Detected an exception of type CUDBG_EXCEPTION_{} ({})", name.text, name.number),
        std::string("  - Device: 0"), std::string("  - SM: 0"), "  - Warp: " + warp,
        fmt::format("  - PC {:#x}", program_counter),
        std::string("Stack trace (lane masks: active 0xFFFFFFFF, valid 0xFFFFFFFF):"),
        fmt::format("  #0\t{:#x}\t{}", program_counter, fault.kernel)}) {
    lines += head + line + "\n";
  }
  return lines;
}

}  // namespace firebreak::softgpu::driver
