// SPDX-License-Identifier: Apache-2.0
/// A GPU fault as seen by one source: every detector says it, and everybody else decides on it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ground/base/clock.h"

namespace firebreak::fault {

/// The classes of the design: who sees a fault, and what it ends, follows from the class.
enum class FaultClass {
  MmuReplayable,     ///< SM load, store, atomic or instruction fetch that the MMU refused
  MmuNonReplayable,  ///< copy engine or PBDMA access that the MMU refused
  Sm,                ///< exception inside a streaming multiprocessor (trap, misaligned, out of range, ...)
  Termination,       ///< a client was killed, crashed or left while its work was in flight
  Device,            ///< ECC, NVLink, fallen off the bus: the GPU itself
  Unknown,
};

/// The source: the rows of sources.def, from the earliest to the latest.
enum class FaultSource {
#define FIREBREAK_SOURCE(name, ...) name,
#include "agent/faults/fault/sources.def"
#undef FIREBREAK_SOURCE
};

/// The GPU that a signal is about.
struct Gpu {
  std::optional<std::uint32_t> number = {};  ///< number in this machine, as NVML counts; empty: not known
  std::string pci = {};                      ///< its address, "0000:3b:00"; empty: not told
  std::string instance = {};                 ///< of MIG, "GPU-I:1 GPU-CI:0"; empty: the whole GPU
  bool is_here = true;                       ///< false: the address is none of this machine's GPUs
  bool operator==(const Gpu&) const = default;
};

/// True unless something that is known of both differs: an unknown part may be as the other has it.
bool may_be_same(const Gpu& one, const Gpu& other);

/// "GPU 0 (0000:3b:00 GPU-I:1)"; empty: nothing is known of it.
std::string describe(const Gpu& gpu);

/// How the driver writes an address, from "0000:3b:00.0" or "00000000:3B:00.0" as well; empty: it is none.
std::string pci_address(std::string_view text);

/// Needs of a GPU before it is of use again, the least first.
enum class DeviceNeed {
  Unsaid,   ///< the signal says nothing of it
  Nothing,  ///< the GPU is well again
  Drain,    ///< whoever runs there may go on; then a reset
  Reset,
  Reboot,  ///< a reboot of the machine
};

/// One fault as one source saw it. Fields that the source cannot know are empty, never guessed.
struct Fault {
  FaultClass fault_class = FaultClass::Unknown;
  std::string kind;  ///< the source's own word, e.g. "Xid 31" or "fatal fault: store, invalid PDE"
  Gpu gpu;
  std::string domain;                 ///< name of the MPS domain; empty: not known
  std::optional<std::string> tenant;  ///< the culprit's name, where known for certain
  std::optional<pid_t> pid;           ///< the process that the source named; under MPS it may be the server
  std::optional<std::uint64_t> address;  ///< the GPU virtual address that faulted
  std::optional<int> xid;                ///< NVIDIA's Xid code, where there is one
  std::string place;       ///< where in the GPU, in the driver's words: "CE2 HUBCLIENT_CE0"; empty: not told
  bool conclusive = true;  ///< false: alone no fault, as the end of a process of which no more is known
  bool is_notice = false;  ///< nothing is wrong now, by NVIDIA's words or the line's own
  DeviceNeed needs = DeviceNeed::Unsaid;  ///< need of the GPU itself
  std::optional<int> follows_xid = {};    ///< the Xid whose consequence it is, where its words say so
  bool contained = false;  ///< the module of docs/how/isolation.md kept it from everybody but its process
  Monotonic when{};        ///< time when the detector had it in hand
  FaultSource source = FaultSource::Xid;
};

const char* to_string(FaultClass fault_class);
const char* to_string(FaultSource source);
/// "drain", "reset", "reboot"; of the first two: "nothing".
const char* to_string(DeviceNeed need);

/// True when it says that a process has left the GPU: it ended, is ending, or its MPS server lost it. Alone
/// that is a fault only where it was no orderly end.
bool is_departure(const Fault& fault);

/// True when all clients of its domain share its end, which is one channel group under MPS: what the graphics
/// engine did, its SMs and its front end, and what the group's own PBDMA did. A copy engine's fault ends its
/// own client alone. An Xid 31 that does not say which engine it was, as NVML's, says neither.
bool ends_group(const Fault& fault);

/// "Xid 31, MMU (replayable), address 0x7000dead0000, process 4711, from kmsg": one line for logs.
std::string describe(const Fault& fault);

}  // namespace firebreak::fault
