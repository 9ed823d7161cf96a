// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/uvm_record.h"

#include <cstring>

namespace firebreak::watch {
namespace {

using abi::UvmEventType;

/// The two clocks may drift apart by 500 parts in a million, and an event may have waited for us.
constexpr std::uint64_t clock_slack_ns = 60'000'000'000;
constexpr std::uint64_t drift_parts = 1000;

template <class T>
T read(std::span<const std::byte> entry) {
  T info;
  std::memcpy(&info, entry.data(), sizeof(T));
  return info;
}

template <class T>
UvmRecord from_fatal(const T& info) {
  UvmRecord record;
  record.type = UvmEventType::FatalFault;
  record.fault_type = info.fault_type;
  record.access_type = info.access_type;
  record.reason = info.reason;
  // The CPU's faults have no fault type; its index alone is also what a program without GPU indices writes.
  record.of_the_cpu =
      info.processor_index == abi::uvm_cpu_index && info.fault_type == abi::UvmFaultType::Invalid;
  record.address = info.address;
  record.timestamp_ns = info.timestamp_ns;
  return record;
}

template <class T>
UvmRecord from_page_fault(const T& info) {
  UvmRecord record;
  record.type = UvmEventType::GpuFault;
  record.fault_type = info.fault_type;
  record.access_type = info.access_type;
  record.client_type = info.client_type;
  record.address = info.address;
  record.timestamp_ns = info.timestamp_ns;
  return record;
}

std::string fault_word(abi::UvmFaultType type) {
  switch (type) {
    case abi::UvmFaultType::InvalidPde:
      return "invalid PDE";
    case abi::UvmFaultType::InvalidPte:
      return "invalid PTE";
    case abi::UvmFaultType::Write:
      return "write to read-only";
    case abi::UvmFaultType::Atomic:
      return "atomic not allowed";
    case abi::UvmFaultType::InvalidPdeSize:
      return "invalid PDE size";
    case abi::UvmFaultType::LimitViolation:
      return "address limit";
    case abi::UvmFaultType::UnboundInstanceBlock:
      return "unbound instance block";
    case abi::UvmFaultType::PrivilegeViolation:
      return "privilege";
    case abi::UvmFaultType::PitchMaskViolation:
      return "pitch mask";
    case abi::UvmFaultType::WorkCreation:
      return "work creation";
    case abi::UvmFaultType::UnsupportedAperture:
      return "unsupported aperture";
    case abi::UvmFaultType::CompressionFailure:
      return "compression failure";
    case abi::UvmFaultType::UnsupportedKind:
      return "unsupported kind";
    case abi::UvmFaultType::RegionViolation:
      return "region";
    case abi::UvmFaultType::Poison:
      return "poisoned memory";
    case abi::UvmFaultType::ConfidentialComputing:
      return "confidential computing";
    case abi::UvmFaultType::Invalid:
      break;
  }
  return "fault type " + std::to_string(static_cast<unsigned>(type));
}

}  // namespace

const char* to_string(UvmLayout layout) { return layout == UvmLayout::V1 ? "V1" : "V2"; }

std::string word_of(abi::UvmAccessType access) {
  switch (access) {
    case abi::UvmAccessType::Read:
      return "load";
    case abi::UvmAccessType::Write:
      return "store";
    case abi::UvmAccessType::Atomic:
      return "atomic";
    case abi::UvmAccessType::Prefetch:
      return "prefetch";
    case abi::UvmAccessType::Invalid:
      break;
  }
  return "access type " + std::to_string(static_cast<unsigned>(access));
}

std::optional<UvmRecord> decode(UvmLayout layout, std::span<const std::byte> entry) {
  if (entry.size() < entry_bytes(layout)) return std::nullopt;
  const bool v1 = layout == UvmLayout::V1;
  switch (static_cast<UvmEventType>(entry[0])) {
    case UvmEventType::FatalFault:
      return v1 ? from_fatal(read<abi::UvmFatalFault>(entry)) : from_fatal(read<abi::UvmFatalFaultV2>(entry));
    case UvmEventType::GpuFault:
      return v1 ? from_page_fault(read<abi::UvmGpuFault>(entry))
                : from_page_fault(read<abi::UvmGpuFaultV2>(entry));
    case UvmEventType::FaultBufferOverflow: {
      UvmRecord record;
      record.type = UvmEventType::FaultBufferOverflow;
      return record;
    }
    default:
      return std::nullopt;
  }
}

std::string implausible(const UvmRecord& record, Monotonic now) {
  // No driver was seen to send one, so nothing is known of what it holds.
  if (record.type == UvmEventType::FaultBufferOverflow) return {};
  const auto now_ns = static_cast<std::uint64_t>(to_ns(now));
  const std::uint64_t slack = clock_slack_ns + now_ns / drift_parts;
  const std::uint64_t difference =
      record.timestamp_ns > now_ns ? record.timestamp_ns - now_ns : now_ns - record.timestamp_ns;
  if (difference <= slack) return {};
  return "its time is " + std::to_string(record.timestamp_ns) + " ns and now is " + std::to_string(now_ns);
}

std::string describe(const UvmRecord& record) {
  return word_of(record.access_type) + ", " + fault_word(record.fault_type);
}

}  // namespace firebreak::watch
