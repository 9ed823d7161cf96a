// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_va_space.c: the page directory is unset, the page tree still there.
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
