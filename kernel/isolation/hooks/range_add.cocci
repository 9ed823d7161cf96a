// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_va_range*.c: every way in which a range enters a VA space.
// It relies on this: every range enters the VA space's tree with uvm_range_tree_add, under the VA space lock in
// write mode; sinks are made under it in read mode.
@@
expression va_space, node;
@@
-uvm_range_tree_add(&va_space->va_range_tree, node)
+uvm_fault_isolation_range_add(va_space, node)
