// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_va_space.h: at the end, so that no other field moves.
// It relies on this: at the end of the structure: no other field moves.
@@
@@
 struct uvm_va_space_struct {
 ...
 nv_kthread_q_item_t deferred_release_q_item;
+struct uvm_fault_isolation_client_struct *fault_isolation;
 };
