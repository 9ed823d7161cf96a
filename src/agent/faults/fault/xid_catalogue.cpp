// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "agent/faults/fault/xid.h"

namespace firebreak::fault {
namespace {

using FaultClass::Device;
using FaultClass::MmuNonReplayable;
using FaultClass::MmuReplayable;
using FaultClass::Sm;
using FaultClass::Termination;
using enum XidAction;

// Codes: NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors, with codes to 172) and nverror.h of the
// open kernel modules 595.45.04 (to 176). Actions: the catalogue's "immediate action"; Unspecified where it
// names none. Codes that it calls unused have CONTACT_SUPPORT there. Meanings in our own words. The class is
// about what the fault is to a tenant: 43 counts as SM because it is all that a trap leaves behind (measured
// on an H100), 45 as termination because it is the driver clearing away the channels of somebody who left or
// was ended.
constexpr XidEntry catalogue[] = {
    {1, FaultClass::Unknown, ContactSupport, "the host engine met an illegal method"},
    {2, FaultClass::Unknown, ContactSupport, "the host engine met a software method"},
    {3, FaultClass::Unknown, ContactSupport, "the host engine met an unknown method"},
    {4, FaultClass::Unknown, ContactSupport, "the host engine found a channel busy"},
    {5, FaultClass::Unknown, ContactSupport, "the host engine ran over"},
    {6, FaultClass::Unknown, ContactSupport, "the host engine could not parse"},
    {7, FaultClass::Unknown, ContactSupport, "the host engine met a bad page table entry"},
    {8, FaultClass::Unknown, RestartApp, "the GPU made no progress for too long"},
    {9, FaultClass::Unknown, ContactSupport, "an instance error of the graphics engine"},
    {10, FaultClass::Unknown, ContactSupport, "the graphics engine was stepped"},
    {11, FaultClass::Unknown, RestartApp, "a malformed command in a push buffer"},
    {12, FaultClass::Unknown, ContactSupport,
     "the driver failed to handle an exception of the graphics engine"},
    {13, Sm, RestartApp, "an exception inside the graphics or compute engine"},
    {14, Device, Ignore, "an error that was injected for a test"},
    {15, FaultClass::Unknown, ContactSupport, "a scan line took too long"},
    {16, FaultClass::Unknown, ContactSupport, "the display engine hung"},
    {17, FaultClass::Unknown, ContactSupport, "a bad parameter"},
    {18, FaultClass::Unknown, ContactSupport, "the GPU may not master its bus"},
    {19, FaultClass::Unknown, ContactSupport, "the display missed a notifier"},
    {20, FaultClass::Unknown, ContactSupport, "an error of the MPEG engine"},
    {21, FaultClass::Unknown, ContactSupport, "an error of the motion estimation engine"},
    {22, FaultClass::Unknown, ContactSupport, "an error of the video processor"},
    {23, FaultClass::Unknown, ContactSupport, "error logging was turned on"},
    {24, FaultClass::Unknown, ContactSupport, "a wait for a semaphore timed out"},
    {25, FaultClass::Unknown, RestartApp, "an illegal or malformed push buffer"},
    {26, FaultClass::Unknown, ContactSupport, "the frame buffer interface timed out"},
    {27, FaultClass::Unknown, ContactSupport, "an error of the video processor"},
    {28, FaultClass::Unknown, ContactSupport, "an error of the second video processor"},
    {29, FaultClass::Unknown, ContactSupport, "an error of the bit stream processor"},
    {30, FaultClass::Unknown, ContactSupport, "an access to a bad address"},
    {31, MmuReplayable, RestartApp, "the MMU refused a memory access"},
    {32, FaultClass::Unknown, RestartApp, "the host engine could not read its push buffer"},
    {33, FaultClass::Unknown, ContactSupport, "an error of the security engine"},
    {34, FaultClass::Unknown, ContactSupport, "an error of the video bit stream decoder"},
    {35, FaultClass::Unknown, ContactSupport, "an error of the video picture decoder"},
    {36, FaultClass::Unknown, ContactSupport, "an error of the video post-processor"},
    {37, FaultClass::Unknown, Ignore, "firmware of the driver was sent a method that it does not know"},
    {38, FaultClass::Unknown, Ignore, "firmware of the driver took too long"},
    {39, FaultClass::Unknown, RestartApp, "an exception in copy engine 0"},
    {40, FaultClass::Unknown, RestartApp, "an exception in copy engine 1"},
    {41, FaultClass::Unknown, RestartApp, "an exception in copy engine 2"},
    {42, FaultClass::Unknown, ContactSupport, "an exception in the video image compositor"},
    {43, Sm, Ignore, "a channel was reset after its own work failed"},
    {44, Sm, Ignore, "a fault while the graphics engine switched contexts"},
    {45, Termination, WorkflowXid45,
     "channels were cleared away after an earlier error or the end of a process"},
    {46, Device, ResetGpu, "the GPU stopped processing"},
    {47, FaultClass::Unknown, ContactSupport, "an exception in video encoder 0"},
    {48, Device, WorkflowXid48, "an uncorrectable error in memory (double-bit ECC)"},
    {49, FaultClass::Unknown, ContactSupport, "quiet running: the level was set by configuration"},
    {50, FaultClass::Unknown, ContactSupport, "quiet running: a change of level after an error"},
    {51, FaultClass::Unknown, ContactSupport, "quiet running: a stress test failed"},
    {52, FaultClass::Unknown, ContactSupport, "quiet running: a change of level as it got hot"},
    {53, FaultClass::Unknown, ContactSupport, "quiet running: slower clocks as it got hot"},
    {54, Device, CheckMechanicals, "auxiliary power is missing"},
    {55, FaultClass::Unknown, ContactSupport, "quiet running: the temperature could not be read"},
    {56, Device, ContactSupport, "an error of the display engine"},
    {57, Device, ContactSupport, "an error while training the video memory interface"},
    {58, Device, ContactSupport, "an error of the video memory"},
    {59, Device, ContactSupport, "an internal error of a microcontroller"},
    {60, FaultClass::Unknown, RestartApp, "an exception in the security processor"},
    {61, Device, ContactSupport, "an internal microcontroller hit a breakpoint"},
    {62, Device, ResetGpu, "an internal microcontroller halted"},
    {63, Device, Ignore, "a memory row or page was recorded for remapping or retirement"},
    {64, Device, ResetGpu, "a memory row or page could not be recorded for remapping or retirement"},
    {65, FaultClass::Unknown, ContactSupport, "an exception in video encoder 1"},
    {66, FaultClass::Unknown, Ignore, "the driver was caught at an illegal register access"},
    {67, FaultClass::Unknown, Ignore, "the driver was caught at an illegal access"},
    {68, FaultClass::Unknown, RestartApp, "an exception in video decoder 0"},
    {69, Sm, RestartApp, "an invalid class or method reached the graphics engine"},
    {70, FaultClass::Unknown, RestartApp, "an exception in copy engine 3"},
    {71, FaultClass::Unknown, RestartApp, "an exception in copy engine 4"},
    {72, FaultClass::Unknown, RestartApp, "an exception in copy engine 5"},
    {73, FaultClass::Unknown, ContactSupport, "an exception in video encoder 2"},
    {74, Device, WorkflowNvlink, "an error of an NVLink"},
    {75, FaultClass::Unknown, RestartApp, "an exception in copy engine 6"},
    {76, FaultClass::Unknown, RestartApp, "an exception in copy engine 7"},
    {77, FaultClass::Unknown, RestartApp, "an exception in copy engine 8"},
    {78, Device, UpdateSoftware, "the start of a virtual GPU failed"},
    {79, Device, RestartMachine, "the GPU no longer answers on its bus"},
    {80, FaultClass::Unknown, RestartApp, "corrupted commands reached the GPU"},
    {81, Device, ContactSupport, "an error of the display hardware"},
    {82, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 0"},
    {83, FaultClass::Unknown, RestartApp, "an exception in video decoder 1"},
    {84, FaultClass::Unknown, RestartApp, "an exception in video decoder 2"},
    {85, FaultClass::Unknown, RestartApp, "an exception in copy engine 9"},
    {86, FaultClass::Unknown, RestartApp, "an exception in optical flow engine 0"},
    {87, FaultClass::Unknown, ContactSupport, "a report for telemetry"},
    {88, FaultClass::Unknown, RestartApp, "an exception in video decoder 3"},
    {89, FaultClass::Unknown, RestartApp, "an exception in video decoder 4"},
    {90, Device, ContactSupport, "an error of the level 2 cache"},
    {91, FaultClass::Unknown, ContactSupport, "reserved"},
    {92, Device, Ignore, "many single-bit ECC errors were corrected"},
    {93, Device, Ignore, "the firmware storage is written more often than it should be"},
    {94, Device, RestartApp, "an uncorrectable ECC error that was contained to one application"},
    {95, Device, ResetGpu, "an uncorrectable ECC error that was not contained"},
    {96, FaultClass::Unknown, RestartApp, "an exception in video decoder 5"},
    {97, FaultClass::Unknown, RestartApp, "an exception in video decoder 6"},
    {98, FaultClass::Unknown, RestartApp, "an exception in video decoder 7"},
    {99, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 1"},
    {100, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 2"},
    {101, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 3"},
    {102, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 4"},
    {103, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 5"},
    {104, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 6"},
    {105, FaultClass::Unknown, RestartApp, "an exception in JPEG engine 7"},
    {106, Device, Ignore, "a test message of the management bus"},
    {107, Device, Ignore, "a silent test message of the management bus"},
    {108, MmuNonReplayable, Ignore, "an access over NVLink was not translated by the other GPU"},
    {109, Sm, ResetGpu, "switching contexts timed out"},
    {110, Device, ResetGpu, "a security fault of the GPU"},
    {111, Device, ContactSupport, "an error in a bundle of the display"},
    {112, Device, ContactSupport, "an error of the display supervisor"},
    {113, Device, ContactSupport, "a display link could not be trained"},
    {114, Device, ContactSupport, "the display ran out of data"},
    {115, Device, ContactSupport, "an error of the display's core channel"},
    {116, Device, ContactSupport, "an error of a display window's channel"},
    {117, Device, ContactSupport, "an error of the display cursor's channel"},
    {118, Device, ContactSupport, "an error of a display head"},
    {119, Device, ResetGpu, "the GPU system processor did not answer in time"},
    {120, Device, ResetGpu, "the GPU system processor met an error"},
    {121, Device, Ignore, "a chip-to-chip link corrected errors"},
    {122, Device, ContactSupport, "the firmware storage could not be read"},
    {123, Device, ContactSupport, "the firmware storage could not be written"},
    {124, Device, ContactSupport, "the firmware storage could not be erased"},
    {125, Device, ContactSupport, "the file system of the firmware storage failed"},
    {126, FaultClass::Unknown, RestartApp, "an exception in copy engine 10"},
    {127, FaultClass::Unknown, RestartApp, "an exception in copy engine 11"},
    {128, FaultClass::Unknown, RestartApp, "an exception in copy engine 12"},
    {129, FaultClass::Unknown, RestartApp, "an exception in copy engine 13"},
    {130, FaultClass::Unknown, RestartApp, "an exception in copy engine 14"},
    {131, FaultClass::Unknown, RestartApp, "an exception in copy engine 15"},
    {132, FaultClass::Unknown, RestartApp, "an exception in copy engine 16"},
    {133, FaultClass::Unknown, RestartApp, "an exception in copy engine 17"},
    {134, FaultClass::Unknown, RestartApp, "an exception in copy engine 18"},
    {135, FaultClass::Unknown, RestartApp, "an exception in copy engine 19"},
    {136, Device, ResetGpu, "a link's training failed"},
    {137, MmuNonReplayable, Ignore, "an access from another GPU over NVLink was refused by the MMU"},
    {138, FaultClass::Unknown, ContactSupport, "an error of the deep learning accelerator"},
    {139, FaultClass::Unknown, RestartApp, "an exception in optical flow engine 1"},
    {140, Device, ResetGpu, "an ECC error that could not be recovered"},
    {141, FaultClass::Unknown, Ignore, "an error of CUDA's fast path"},
    {142, FaultClass::Unknown, ContactSupport, "an exception in video encoder 3"},
    {143, Device, ResetGpu, "the GPU could not be brought up"},
    {144, Device, WorkflowNvlink5, "NVLink 5: error of the SAW unit"},
    {145, Device, WorkflowNvlink5, "NVLink 5: error of the RLW unit"},
    {146, Device, WorkflowNvlink5, "NVLink 5: error of the TLW unit"},
    {147, Device, WorkflowNvlink5, "NVLink 5: error of the TREX unit"},
    {148, Device, WorkflowNvlink5, "NVLink 5: error of the NVLPW control unit"},
    {149, Device, WorkflowNvlink5, "NVLink 5: error of the NETIR unit"},
    {150, Device, WorkflowNvlink5, "NVLink 5: error of the MSE unit"},
    {151, Device, RestartVirtualMachine, "the rotation of a key failed"},
    {152, FaultClass::Unknown, Ignore, "the deep learning accelerator was refused a memory access"},
    {153, FaultClass::Unknown, Ignore, "the deep learning accelerator took too long"},
    {154, Device, SeeXid154, "the recovery that the GPU needs has changed"},
    {155, Device, ResetGpu, "an NVLink was taken down by software"},
    {156, Device, ResetGpu, "a resource was retired"},
    {157, Device, Ignore, "a resource could not be retired"},
    {158, Device, ResetGpu, "a fatal timeout of the GPU"},
    {159, Device, CheckUvm, "a chip-to-chip transfer failed without data"},
    {160, Device, Ignore, "a memory channel was retired"},
    {161, Device, Ignore, "a memory channel could not be retired"},
    {162, Device, Unspecified, "power smoothing is engaged again"},
    {163, Device, Unspecified, "power smoothing is no longer engaged"},
    {164, Device, Unspecified, "power smoothing is nearly worn out"},
    {165, Device, Unspecified, "power smoothing is worn out"},
    {166, Device, Unspecified, "NVLink met traffic that should have been encrypted"},
    {167, Device, Unspecified, "a fatal timeout on PCI Express"},
    {168, Device, Unspecified, "the GPU has less memory than it should"},
    {169, Device, Unspecified, "the security processor halted"},
    {170, Device, Unspecified, "an error of secure NVLink"},
    {171, Device, Unspecified, "the uncorrectable error (Xid 48) was in DRAM"},
    {172, Device, Unspecified, "the uncorrectable error (Xid 48) was in SRAM"},
    {173, Device, Unspecified, "a chip-to-chip link failed for good"},
    {174, Termination, Unspecified, "a process was ended after its channel was reset"},
    {175, Device, Unspecified, "an error of the memory subsystem"},
    {176, Device, Unspecified, "many PCI Express errors were corrected"},
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
    case XidAction::SeeXid154:
      return "XID_154";
    case XidAction::CheckUvm:
      return "CHECK_UVM";
    case XidAction::RestartVirtualMachine:
      return "RESTART_VM";
    case XidAction::Unspecified:
      return "UNSPECIFIED";
    case XidAction::Unknown:
      return "UNKNOWN";
  }
  return "UNKNOWN";
}

}  // namespace firebreak::fault
