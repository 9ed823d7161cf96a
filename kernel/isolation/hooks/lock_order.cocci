// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_lock.h: a client's lock comes after its VA space's and before an external range tree's.
// It relies on this: A client's mutex comes after its VA space's lock and before an external range tree's.
@@
identifier order_type = uvm_lock_order_t;
@@
 typedef enum {
 ...,
 UVM_LOCK_ORDER_VA_SPACE,
+UVM_LOCK_ORDER_FAULT_ISOLATION,
 UVM_LOCK_ORDER_EXT_RANGE_TREE,
 ...
 } uvm_lock_order_t;
