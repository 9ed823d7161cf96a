// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_replayable_faults.c: before anything is pushed; who calls flushes and replays afterwards, cancelled or not.
// It relies on this: where there are subcontexts (Volta and later) its only caller is translate_instance_ptrs.
// After a cancel that caller flushes the buffer, replays and starts again. So NV_OK without a cancel means just
// that. The service lock is held.
@@
symbol gpu, global_cancel;
expression status;
statement other;
@@
 push_cancel_on_gpu(...)
 {
 <...
+if (global_cancel && uvm_fault_isolation_flush_stale(gpu))
+    return NV_OK;
+
 if (global_cancel)
 {
 status = uvm_push_begin_acquire(...);
 }
 else other
 ...>
 }
