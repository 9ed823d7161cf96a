// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_replayable_faults.c: a service error cancels every entry of the batch; `reason` marks the one that is to blame.
// 535 passes the GPU, later branches have it in the entry.
@@
identifier entry, batch, index, reason, status, mode;
expression gpu;
@@
 cancel_faults_all(..., uvm_fault_service_batch_context_t *batch, UvmEventFatalReason reason)
 {
 <...
 for (;index < batch->num_coalesced_faults && ...; entry = batch->ordered_fault_cache[++index])
 {
 ...
 if (entry->is_fatal) { ... }
 else {
+if (uvm_fault_isolation_spare(gpu, batch, index))
+    continue;
+
 entry->fatal_reason = reason;
 ...
 }
 status = cancel_fault_precise_va(gpu, entry, mode);
 ...
 }
 ...>
 }

@@
identifier entry, batch, index, reason, status, mode;
@@
 cancel_faults_all(..., uvm_fault_service_batch_context_t *batch, UvmEventFatalReason reason)
 {
 <...
 for (;index < batch->num_coalesced_faults && ...; entry = batch->ordered_fault_cache[++index])
 {
 ...
 if (entry->is_fatal) { ... }
 else {
+if (uvm_fault_isolation_spare(entry->gpu, batch, index))
+    continue;
+
 entry->fatal_reason = reason;
 ...
 }
 status = cancel_fault_precise_va(entry, mode);
 ...
 }
 ...>
 }
