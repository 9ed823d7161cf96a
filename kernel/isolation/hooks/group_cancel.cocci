// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_replayable_faults.c: the cancels that name no address. Both of their callers come through here.
// It relies on this: all cancels without an address: of a subcontext that is gone, and everything on Pascal.
@@
symbol gpu;
expression status;
@@
 push_cancel_on_gpu(...)
 {
 <...
 status = uvm_push_end_and_wait(...);
+uvm_fault_isolation_group_cancel(gpu);
 ...>
 }
