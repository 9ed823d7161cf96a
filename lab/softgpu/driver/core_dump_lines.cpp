// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/core_dump_lines.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "softgpu/driver/core_dump_file.h"

namespace firebreak::softgpu::driver {
namespace {

struct ExceptionName {
  const char* text;
  std::uint32_t number;
};

ExceptionName name_of(GpuFaultKind kind) {
  switch (kind) {
    case GpuFaultKind::MisalignedAddress:
      return {"WARP_MISALIGNED_ADDRESS", 6};
    case GpuFaultKind::UnmappedAccess:
    case GpuFaultKind::ReadOnlyViolation:
      return {"WARP_ILLEGAL_ADDRESS", 14};
    // A stack overflow too: there is another number for it, and an H100 did not give it.
    case GpuFaultKind::OutOfRangeAddress:
    case GpuFaultKind::LocalOutOfBounds:
    case GpuFaultKind::StackOverflow:
      return {"WARP_OUT_OF_RANGE_ADDRESS", 5};
    // The same holds for shared memory and for a bad program counter.
    case GpuFaultKind::IllegalInstruction:
    case GpuFaultKind::SharedOutOfBounds:
    case GpuFaultKind::InstructionFetch:
      return {"WARP_ILLEGAL_INSTRUCTION", 4};
    case GpuFaultKind::Assertion:
      return {"WARP_ASSERT", 12};
    case GpuFaultKind::Trap:
    case GpuFaultKind::Breakpoint:
      break;
  }
  return {"NONE", 0};
}

/// Returns the beginning of every line.
std::string head() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count() % 1'000'000;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  return fmt::format("[{:%H:%M:%S}.{:06}] coredump: ", fmt::localtime(seconds), us);
}

}  // namespace

bool warp_has_left(const GpuFault& fault) {
  const bool store = fault.access == GpuAccess::Store || fault.access == GpuAccess::Atomic;
  return store &&
         (fault.kind == GpuFaultKind::UnmappedAccess || fault.kind == GpuFaultKind::ReadOnlyViolation);
}

std::uint32_t exception_number(GpuFaultKind kind) { return name_of(kind).number; }

std::uint64_t program_counter(const GpuFault& fault) {
  return 0x7f0000000000 + std::uint64_t{fault.ptx_line} * 16;
}

std::string core_dump_lines(const GpuFault& fault) {
  const ExceptionName name = name_of(fault.kind);
  if (name.number == 0) return {};
  const std::string begin = head();
  const std::string warp = warp_has_left(fault) ? "exception was detected after the warp has exited" : "0";
  std::string lines;
  for (const std::string& line :
       {fmt::format("Detected an exception of type CUDBG_EXCEPTION_{} ({})", name.text, name.number),
        std::string("  - Device: 0"), std::string("  - SM: 0"), "  - Warp: " + warp,
        fmt::format("  - PC {:#x}", program_counter(fault)),
        std::string("Stack trace (lane masks: active 0xFFFFFFFF, valid 0xFFFFFFFF):"),
        fmt::format("  #0\t{:#x}\t{}", program_counter(fault), fault.kernel)}) {
    lines += begin + line + "\n";
  }
  return lines;
}

std::string core_dump_begin_lines() {
  const std::string begin = head();
  std::string lines = begin + "Starting GPU coredump generation\n";
  for (std::uint32_t sm = 1; sm <= core_dump_sms; ++sm) {
    lines += fmt::format("{}SM {}/{} has finished state collection\n", begin, sm, core_dump_sms);
  }
  return lines;
}

std::string core_dump_end_lines() {
  const std::string begin = head();
  return begin + "Writing done\n" + begin + "All done (took 00s)\n";
}

}  // namespace firebreak::softgpu::driver
