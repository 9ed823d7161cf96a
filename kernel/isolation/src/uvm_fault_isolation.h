// SPDX-License-Identifier: MIT OR GPL-2.0-only
// What the hooks in NVIDIA's files call. A fatal fault of one client of a shared channel group is contained before anybody tells RM.
#ifndef __UVM_FAULT_ISOLATION_H__
#define __UVM_FAULT_ISOLATION_H__

#include "uvm_forward_decl.h"
#include "uvm_range_tree.h"
#include "uvm_types.h"

// What isolation knows of one VA space. NULL where it could not be allocated: then nothing of that VA space is contained.
typedef struct uvm_fault_isolation_client_struct uvm_fault_isolation_client_t;

// Module load, before anything else: uvm_global_init(), where nvidia.ko is of the version that this module was built from. Otherwise
// NV_ERR_LIB_RM_VERSION_MISMATCH, the kernel log says what to do, and the load fails.
NV_STATUS uvm_fault_isolation_global_init(void);

// Module load, after everything else is up, and unload, before anything else goes down.
void uvm_fault_isolation_init(void);
void uvm_fault_isolation_exit(void);

// A GPU is added, and nobody can use it yet: tests whether it takes sparse entries.
// Locking: the global lock.
void uvm_fault_isolation_gpu_add(uvm_gpu_t *gpu);

// The VA space comes into being in its process, is mapped by a process, and goes. Destroy also waits for work of ours that names it.
void uvm_fault_isolation_client_create(uvm_va_space_t *va_space);
void uvm_fault_isolation_client_mmap(uvm_va_space_t *va_space);
void uvm_fault_isolation_client_destroy(uvm_va_space_t *va_space);

// A fatal replayable fault, instead of its cancel. True: contained, the replay that follows ends it. False: cancel as ever.
// Locking: the ISR service lock, the VA space lock in read mode. One of the two callers also has mmap_lock in read mode where the VA space
// has an mm, so nothing may rely on it.
bool uvm_fault_isolation_contain_replayable(uvm_gpu_t *gpu, uvm_fault_buffer_entry_t *fault_entry);

// Called before that. A service error cancels the whole batch, also entries that are not fatal. True: this one is somebody else's or
// already served; the replay that follows is enough for it.
bool uvm_fault_isolation_spare(uvm_gpu_t *gpu, uvm_fault_buffer_entry_t *fault_entry);

// The same for a copy engine's or PBDMA's fault, just before RM hears of it. True: contained, and the channel runs again.
// Locking: the VA space lock in read mode.
bool uvm_fault_isolation_contain_channel(uvm_user_channel_t *user_channel);

// Before a cancel that hits a whole channel group, for a fault of a subcontext whose VA space is gone. True: no cancel, since it may be
// the duplicate of a fault that was serviced before the VA space went; the flush drops it, and work that is still there faults again.
// Locking: the replayable faults' service lock.
bool uvm_fault_isolation_flush_stale(uvm_gpu_t *gpu);

// After that cancel. It can only be counted: there are no page tables left to write to.
void uvm_fault_isolation_group_cancel(uvm_gpu_t *gpu);

// Adds a VA range's node to its VA space, unless a sink is in the way: NV_ERR_UVM_ADDRESS_IN_USE.
// Locking: the VA space lock in write mode.
NV_STATUS uvm_fault_isolation_range_add(uvm_va_space_t *va_space, uvm_range_tree_node_t *node);

// After the page directory is unset and before the page tree goes: frees the sinks in it.
void uvm_fault_isolation_remove_sinks(uvm_gpu_va_space_t *gpu_va_space);

// A process that shares a channel group died: true when what follows was put off for the grace time.
bool uvm_fault_isolation_defer_mm_release(uvm_va_space_t *va_space, struct file *uvm_file);
bool uvm_fault_isolation_defer_va_space_destroy(uvm_va_space_t *va_space);

#endif // __UVM_FAULT_ISOLATION_H__
