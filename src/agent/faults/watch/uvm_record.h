// SPDX-License-Identifier: Apache-2.0
/// One UVM tools event, whichever layout the driver wrote it in. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "ground/base/clock.h"
#include "shared/abi/uvm_tools.h"

namespace firebreak::watch {

enum class UvmLayout { V1, V2 };

constexpr std::size_t entry_bytes(UvmLayout layout) {
  return layout == UvmLayout::V1 ? sizeof(abi::UvmEvent) : sizeof(abi::UvmEventV2);
}
const char* to_string(UvmLayout layout);

/// The events that we ask for. Fields that the event's type does not have are Invalid or 0.
struct UvmRecord {
  abi::UvmEventType type = abi::UvmEventType::Invalid;
  abi::UvmFaultType fault_type = abi::UvmFaultType::Invalid;
  abi::UvmAccessType access_type = abi::UvmAccessType::Invalid;
  abi::UvmFatalReason reason = abi::UvmFatalReason::Invalid;
  abi::UvmClientType client_type = abi::UvmClientType::Invalid;
  bool of_the_cpu = false;  ///< a fatal fault of the CPU, not of a GPU
  std::uint64_t address = 0;
  std::uint64_t timestamp_ns = 0;  ///< time of CLOCK_MONOTONIC_RAW
};

/// Reads one entry of entry_bytes(layout) bytes. Empty when its type is none that we ask for.
std::optional<UvmRecord> decode(UvmLayout layout, std::span<const std::byte> entry);

/// Why the record cannot be what this layout says it is; empty when nothing is against it. New values of the
/// enumerations are nothing against it: drivers add some. A time far from `now` means that the driver's
/// events look otherwise.
std::string implausible(const UvmRecord& record, Monotonic now);

/// "store"; in numbers where it is new.
std::string word_of(abi::UvmAccessType access);

/// "store, invalid PDE", in words or, where a value is new, in numbers.
std::string describe(const UvmRecord& record);

}  // namespace firebreak::watch
