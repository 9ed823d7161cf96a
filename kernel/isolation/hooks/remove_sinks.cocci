// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_va_space.c: the page directory is unset, the page tree still there.
// It relies on this: between uvm_gpu_va_space_unset_page_dir and uvm_page_tree_deinit: the GPU no longer walks
// these tables, the tree still counts them.
@@
symbol gpu_va_space;
@@
 destroy_gpu_va_space(...)
 {
 <...
+uvm_fault_isolation_remove_sinks(gpu_va_space);
+
 if (gpu_va_space->page_tables.root)
     uvm_page_tree_deinit(&gpu_va_space->page_tables);
 ...>
 }
