// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_replayable_faults.c: before the tools have their event, since who is spared has had no fatal fault.
@@
symbol gpu, fault_entry;
@@
 cancel_fault_precise_va(...)
 {
 <...
+if (uvm_fault_isolation_spare(gpu, fault_entry))
+    return NV_OK;
+
 uvm_tools_record_gpu_fatal_fault(...);
 ...>
 }
