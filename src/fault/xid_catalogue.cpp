// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "fault/xid.h"

namespace firebreak::fault {
namespace {

using FaultClass::Device;
using FaultClass::MmuNonReplayable;
using FaultClass::MmuReplayable;
using FaultClass::Sm;
using FaultClass::Termination;
using enum XidAction;

// Codes and actions after NVIDIA's Xid documentation; meanings in our own words. The class is about what the
// fault is to a tenant: 43 counts as SM because it is all that a trap leaves behind (measured on an H100), 45
// as termination because it is the driver clearing away the channels of somebody who left or was ended.
constexpr XidEntry catalogue[] = {
    {8, FaultClass::Unknown, RestartApp, "the GPU made no progress for too long"},
    {11, FaultClass::Unknown, RestartApp, "a malformed command in a push buffer"},
    {12, FaultClass::Unknown, RestartApp, "the driver failed to handle an exception of the graphics engine"},
    {13, Sm, RestartApp, "an exception inside the graphics or compute engine"},
    {16, FaultClass::Unknown, RestartApp, "the display engine hung"},
    {18, FaultClass::Unknown, RestartApp, "the GPU may not master its bus"},
    {24, FaultClass::Unknown, RestartApp, "a wait for a semaphore timed out"},
    {25, FaultClass::Unknown, RestartApp, "an illegal or malformed push buffer"},
    {31, MmuReplayable, RestartApp, "the MMU refused a memory access"},
    {32, MmuNonReplayable, RestartApp, "the host engine could not read its push buffer"},
    {37, FaultClass::Unknown, ContactSupport, "the driver found firmware of its own in a bad state"},
    {38, Device, ContactSupport, "a firmware error inside the driver"},
    {39, FaultClass::Unknown, RestartApp, "an exception in copy engine 0"},
    {40, FaultClass::Unknown, RestartApp, "an exception in copy engine 1"},
    {41, FaultClass::Unknown, RestartApp, "an exception in copy engine 2"},
    {42, FaultClass::Unknown, RestartApp, "an exception in the video engine"},
    {43, Sm, RestartApp, "a channel was reset after its own work failed"},
    {44, Sm, RestartApp, "an exception while the graphics engine switched contexts"},
    {45, Termination, WorkflowXid45,
     "channels were cleared away after an earlier error or the end of a process"},
    {46, Device, ResetGpu, "the GPU stopped processing"},
    {47, FaultClass::Unknown, RestartApp, "an exception in the video encoder or decoder"},
    {48, Device, WorkflowXid48, "an uncorrectable error in memory (double-bit ECC)"},
    {54, Device, CheckMechanicals, "auxiliary power is missing"},
    {56, Device, ContactSupport, "an error of the display engine"},
    {57, Device, ContactSupport, "an error while programming the video memory interface"},
    {58, Device, ContactSupport, "an unstable video memory interface, or an uncorrectable error in it"},
    {59, Device, ContactSupport, "an internal error of a microcontroller"},
    {60, FaultClass::Unknown, RestartApp, "an exception in a video processor"},
    {61, Device, ResetGpu, "an internal microcontroller hit a breakpoint or a warning"},
    {62, Device, ResetGpu, "an internal microcontroller halted"},
    {63, Device, Ignore, "a memory row or page was recorded for remapping or retirement"},
    {64, Device, ResetGpu, "a memory row or page could not be recorded for remapping or retirement"},
    {65, FaultClass::Unknown, RestartApp, "an exception in a video processor"},
    {66, FaultClass::Unknown, RestartApp, "the driver was asked for an illegal access"},
    {67, FaultClass::Unknown, RestartApp, "the driver was asked for an illegal access"},
    {68, FaultClass::Unknown, RestartApp, "an exception in video decoder 0"},
    {69, Sm, RestartApp, "an invalid class or method reached the graphics engine"},
    {70, FaultClass::Unknown, RestartApp, "an exception in copy engine 3"},
    {71, FaultClass::Unknown, RestartApp, "an exception in copy engine 4"},
    {72, FaultClass::Unknown, RestartApp, "an exception in copy engine 5"},
    {73, FaultClass::Unknown, RestartApp, "an exception in video encoder 2"},
    {74, Device, WorkflowNvlink, "an error of an NVLink"},
    {75, FaultClass::Unknown, RestartApp, "an exception in copy engine 6"},
    {76, FaultClass::Unknown, RestartApp, "an exception in copy engine 7"},
    {77, FaultClass::Unknown, RestartApp, "an exception in copy engine 8"},
    {78, Device, UpdateSoftware, "the start of a virtual GPU failed"},
    {79, Device, RestartMachine, "the GPU no longer answers on its bus"},
    {80, Device, RestartMachine, "corrupted data reached the GPU"},
    {81, Device, CheckMechanicals, "an error of the display hardware"},
    {82, Device, ContactSupport, "an error of the JPEG engine"},
    {83, FaultClass::Unknown, RestartApp, "an exception in video decoder 1"},
    {84, FaultClass::Unknown, RestartApp, "an exception in video decoder 2"},
    {85, FaultClass::Unknown, RestartApp, "an exception in copy engine 9"},
    {86, FaultClass::Unknown, RestartApp, "an exception in the optical flow engine"},
    {88, FaultClass::Unknown, RestartApp, "an exception in video decoder 3"},
    {89, FaultClass::Unknown, RestartApp, "an exception in video decoder 4"},
    {92, Device, Ignore, "many single-bit ECC errors were corrected"},
    {93, Device, Ignore, "the firmware storage is written more often than it should be"},
    {94, Device, RestartApp, "an uncorrectable ECC error that was contained to one application"},
    {95, Device, ResetGpu, "an uncorrectable ECC error that was not contained"},
    {96, FaultClass::Unknown, RestartApp, "an exception in video decoder 5"},
    {97, FaultClass::Unknown, RestartApp, "an exception in video decoder 6"},
    {98, FaultClass::Unknown, RestartApp, "an exception in video decoder 7"},
    {99, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 1"},
    {100, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 2"},
    {109, Sm, ResetGpu, "switching contexts timed out"},
    {110, Device, ContactSupport, "a security fault of the GPU"},
    {111, Device, ContactSupport, "an error of the display's bundle"},
    {112, Device, ContactSupport, "an error of the display's supervisor"},
    {113, Device, ContactSupport, "an error of a display link"},
    {119, Device, ResetGpu, "the GPU system processor did not answer in time"},
    {120, Device, ResetGpu, "the GPU system processor met an error"},
    {121, Device, Ignore, "a chip-to-chip link was retrained after errors"},
    {122, Device, ContactSupport, "the firmware storage could not be read"},
    {123, Device, ContactSupport, "the firmware storage could not be written"},
    {124, Device, ContactSupport, "the firmware storage could not be erased"},
    {125, Device, ContactSupport, "the file system of the firmware storage failed"},
    {136, Device, ResetGpu, "a link's training failed"},
    {137, MmuNonReplayable, RestartApp, "an access from another GPU over NVLink was refused by the MMU"},
    {140, Device, ResetGpu, "an ECC error that could not be recovered"},
    {143, Device, ResetGpu, "the GPU could not be brought up again after an error"},
    {144, Device, WorkflowNvlink5, "NVLink 5: error of the SAW unit"},
    {145, Device, WorkflowNvlink5, "NVLink 5: error of the RLW unit"},
    {146, Device, WorkflowNvlink5, "NVLink 5: error of the TLW unit"},
    {147, Device, WorkflowNvlink5, "NVLink 5: error of the TREX unit"},
    {148, Device, WorkflowNvlink5, "NVLink 5: error of the NVLPW control unit"},
    {149, Device, WorkflowNvlink5, "NVLink 5: error of the NETIR unit"},
    {150, Device, WorkflowNvlink5, "NVLink 5: error of the MSE unit"},
    {151, Device, ContactSupport, "a key needed to rotate secrets was not available"},
    {154, Device, EvaluateXid154, "the recovery that the GPU needs has changed"},
    {155, Device, WorkflowNvlink5, "an NVLink was taken down by software"},
    {156, Device, ContactSupport, "a memory resource was retired"},
    {157, Device, ContactSupport, "a memory resource could not be retired"},
    {158, Device, CheckMechanicals, "a fatal timeout of the GPU"},
    {159, Device, ContactSupport, "a chip-to-chip transfer failed without data"},
    {160, Device, Ignore, "a memory channel was retired"},
    {161, Device, ContactSupport, "a memory channel could not be retired"},
    {162, Device, Ignore, "power smoothing met a problem"},
};

static_assert(std::ranges::is_sorted(catalogue, {}, &XidEntry::code));

}  // namespace

std::span<const XidEntry> xid_catalogue() { return catalogue; }

XidEntry find_xid(int code) {
  const auto found = std::ranges::lower_bound(catalogue, code, {}, &XidEntry::code);
  if (found != std::end(catalogue) && found->code == code) return *found;
  return XidEntry{code, FaultClass::Unknown, XidAction::Unknown, "a code that is not in the catalogue"};
}

const char* to_string(XidAction action) {
  switch (action) {
    case XidAction::Ignore:
      return "IGNORE";
    case XidAction::RestartApp:
      return "RESTART_APP";
    case XidAction::ResetGpu:
      return "RESET_GPU";
    case XidAction::RestartMachine:
      return "RESTART_BM";
    case XidAction::ContactSupport:
      return "CONTACT_SUPPORT";
    case XidAction::CheckMechanicals:
      return "CHECK_MECHANICALS";
    case XidAction::UpdateSoftware:
      return "UPDATE_SWFW";
    case XidAction::WorkflowXid45:
      return "WORKFLOW_XID_45";
    case XidAction::WorkflowXid48:
      return "WORKFLOW_XID_48";
    case XidAction::WorkflowNvlink:
      return "WORKFLOW_NVLINK_ERR";
    case XidAction::WorkflowNvlink5:
      return "WORKFLOW_NVLINK5_ERR";
    case XidAction::EvaluateXid154:
      return "XID_154_EVAL";
    case XidAction::Unknown:
      return "UNKNOWN";
  }
  return "UNKNOWN";
}

}  // namespace firebreak::fault
