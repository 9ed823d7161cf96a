// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_replayable_faults.c: the tools have their event, the cancel is not pushed yet.
@@
symbol gpu, fault_entry;
@@
 cancel_fault_precise_va(...)
 {
 <...
 uvm_tools_record_gpu_fatal_fault(...);
+
+if (uvm_fault_isolation_contain_replayable(gpu, fault_entry))
+    return NV_OK;
 ...>
 }
