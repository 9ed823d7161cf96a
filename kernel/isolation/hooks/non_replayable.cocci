// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_non_replayable_faults.c: instead of the channel's end, its clearing, with the arguments of the clearing above.
@exists@
identifier f =~ "^service_fault(_once)?$";
symbol gpu, fault_entry;
expression status;
expression list cleared, killed;
expression buffer;
@@
 f(...)
 {
 ... when any
 status = clear_faulted_on_gpu(cleared);
 uvm_tracker_clear(&buffer->fault_service_tracker);
 ... when any
-schedule_kill_channel(killed);
+{
+    if (uvm_fault_isolation_contain_non_replayable(gpu, fault_entry)) {
+        status = clear_faulted_on_gpu(cleared);
+        uvm_tracker_clear(&buffer->fault_service_tracker);
+    }
+
+    if (status != NV_OK || fault_entry->is_fatal)
+        schedule_kill_channel(killed);
+}
 ... when any
 }
