// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_lock.c: the new order's name, and one order more.
// It relies on this: A client's mutex comes after its VA space's lock and before an external range tree's.
@@
expression count;
@@
-BUILD_BUG_ON(UVM_LOCK_ORDER_COUNT != count);
+BUILD_BUG_ON(UVM_LOCK_ORDER_COUNT != count + 1);

@@
@@
 UVM_ENUM_STRING_CASE(UVM_LOCK_ORDER_VA_SPACE);
+UVM_ENUM_STRING_CASE(UVM_LOCK_ORDER_FAULT_ISOLATION);
