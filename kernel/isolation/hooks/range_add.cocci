// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_va_range*.c: every way in which a range enters a VA space.
@@
expression va_space, node;
@@
-uvm_range_tree_add(&va_space->va_range_tree, node)
+uvm_fault_isolation_range_add(va_space, node)
