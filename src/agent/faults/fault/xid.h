// SPDX-License-Identifier: Apache-2.0
/// NVIDIA's Xid messages: the line in the kernel log, and what each code means.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/faults/fault/fault.h"

namespace firebreak::fault {

/// NVIDIA's word for what to do first; its own words, so that operators find them in its documentation.
enum class XidAction {
  Ignore,                 ///< IGNORE: for information
  RestartApp,             ///< RESTART_APP
  ResetGpu,               ///< RESET_GPU
  RestartMachine,         ///< RESTART_BM
  ContactSupport,         ///< CONTACT_SUPPORT
  CheckMechanicals,       ///< CHECK_MECHANICALS: seating, power, cooling
  UpdateSoftware,         ///< UPDATE_SWFW
  WorkflowXid45,          ///< WORKFLOW_XID_45: look for the error before it
  WorkflowXid48,          ///< WORKFLOW_XID_48: depends on the row remapping that follows
  WorkflowNvlink,         ///< WORKFLOW_NVLINK_ERR
  WorkflowNvlink5,        ///< WORKFLOW_NVLINK5_ERR
  SeeXid154,              ///< XID_154: the message names the recovery
  CheckUvm,               ///< CHECK_UVM
  RestartVirtualMachine,  ///< RESTART_VM
  Unspecified,            ///< its documentation names none (yet)
  Unknown,                ///< the code itself is not known here
};

/// One code of the catalogue.
struct XidEntry {
  int code = 0;
  FaultClass fault_class = FaultClass::Unknown;
  XidAction action = XidAction::Unknown;
  std::string_view meaning;
};

/// Returns every code that is known here, ascending.
std::span<const XidEntry> xid_catalogue();

/// The entry of a code; a code that is not in the catalogue gets class and action Unknown.
XidEntry find_xid(int code);

/// NVIDIA's word, e.g. "RESET_GPU".
const char* to_string(XidAction action);

/// One Xid message. What the line does not say is empty; nothing is guessed.
struct XidLine {
  int code = 0;
  std::string pci;                                ///< "0000:00:05"
  std::optional<std::uint32_t> gpu_instance;      ///< instance of MIG; both or none
  std::optional<std::uint32_t> compute_instance;  ///< compute instance in that
  std::optional<pid_t> pid;  ///< the process the driver blames; see measurements: at times the wrong one
  std::optional<std::string> process;  ///< its name, chosen by itself; empty also where it has a comma
  std::optional<std::uint32_t> channel;
  std::optional<std::string> engine;  ///< e.g. "GRAPHICS GPC2"
  std::optional<std::string> client;  ///< the MMU client, e.g. "GPCCLIENT_T1_3"
  std::optional<std::uint64_t> address;
  std::optional<std::string> fault_type;   ///< e.g. "FAULT_PDE"
  std::optional<std::string> access_type;  ///< e.g. "ACCESS_TYPE_VIRT_WRITE"
  std::string detail;                      ///< text behind the common fields, as it is
};

/// The meaning of an Xid.
struct XidMeaning {
  FaultClass fault_class = FaultClass::Unknown;
  bool is_notice = false;
  /// False: the number alone does not say whether anything is wrong.
  bool is_conclusive = true;
  DeviceNeed needs = DeviceNeed::Unsaid;
  std::optional<int> follows_xid = {};
};

/// `words`: of the line, behind its number and the process; empty: only the number is known, as from NVML.
/// Where a code is printed for what is wrong and for what is not, the words decide ("Nonfatal", "to 0x0
/// (None)"). A process's name in them, of 15 characters, cannot pass for the driver's words.
XidMeaning meaning_of(int code, std::optional<std::string_view> words);

/// Reads the text of one kernel message, without the record prefix of /dev/kmsg. Empty when it is not an Xid
/// message: only one that begins as the driver's do counts, so that no other message can pass for one by
/// quoting it.
std::optional<XidLine> parse_xid(std::string_view kmsg_text);

/// The fault that an Xid message tells of. Pure. Of its GPU the address alone.
Fault from_xid(const XidLine& line, Monotonic when);
/// The same by a number alone.
Fault from_xid_number(int code, FaultSource source, Monotonic when);

}  // namespace firebreak::fault
