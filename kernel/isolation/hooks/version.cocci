// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm.c: the first thing that its load does, before nvidia.ko is called.
@@
@@
-uvm_global_init()
+uvm_fault_isolation_global_init()
