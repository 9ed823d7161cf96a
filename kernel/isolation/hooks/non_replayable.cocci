// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_non_replayable_faults.c: instead of the channel's end, back to its clearing. A jump, since a second call of the clearing
// would take the first one out of line.
@exists@
identifier f =~ "^service_fault(_once)?$";
symbol gpu, fault_entry;
expression status;
expression list cleared, killed;
@@
 f(...)
 {
 ... when any
+isolated:
 status = clear_faulted_on_gpu(cleared);
 ... when any
-schedule_kill_channel(killed);
+{
+    if (uvm_fault_isolation_contain_non_replayable(gpu, fault_entry))
+        goto isolated;
+
+    schedule_kill_channel(killed);
+}
 ... when any
 }
