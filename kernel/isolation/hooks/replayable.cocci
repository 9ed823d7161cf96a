// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_replayable_faults.c: the tools have their event, the cancel is not pushed yet.
// It relies on this: every precise cancel goes through here (Volta and later: fault_cancel_va_supported). Callers
// hold the ISR service lock and the VA space in read mode. service_fault_batch_for_cancel holds mmap_lock in read
// mode too, where there is an mm, and has fetched its entries under these locks. cancel_faults_all has neither: it
// works on the batch as it was, so an entry may be stale there. The service context has the mm of the VA space
// whose fatal faults are cancelled (service_fault_batch_for_cancel), or of the one in which the service stopped. A
// fatal entry of another mm therefore comes from cancel_faults_all, and is spared. Where the context has none (VA
// spaces without an mm) it is taken as it is. Both (service_fault_batch_for_cancel, cancel_faults_all) flush and
// replay afterwards. So NV_OK without a cancel means "replay". An entry that is not fatal comes only from
// cancel_faults_all.
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
