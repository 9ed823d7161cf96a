// SPDX-License-Identifier: MIT OR GPL-2.0-only
// What user space asks UVM's test ioctl for. The number is far from those of uvm_test_ioctl.h.
#ifndef __UVM_FAULT_ISOLATION_TEST_IOCTL_H__
#define __UVM_FAULT_ISOLATION_TEST_IOCTL_H__

#include "uvm_test_ioctl.h"

// Of one GPU of the calling VA space, with uvm_fault_isolation_mode=2. With uvm_fault_isolation_test_fails=2 what a failed sink
// leaves, otherwise all else.
#define UVM_TEST_FAULT_ISOLATION UVM_TEST_IOCTL_BASE(900)
typedef struct
{
    NvProcessorUuid gpu_uuid; // In

    // Whether the caller has a channel in a group in which another VA space has one
    NvBool shares_group; // In
    NV_STATUS rmStatus;  // Out
} UVM_TEST_FAULT_ISOLATION_PARAMS;

#ifdef __KERNEL__
    struct file;

    NV_STATUS uvm_test_fault_isolation(UVM_TEST_FAULT_ISOLATION_PARAMS *params, struct file *filp);
#endif

#endif // __UVM_FAULT_ISOLATION_TEST_IOCTL_H__
