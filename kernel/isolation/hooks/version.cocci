// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm.c: the first thing that its load does, before nvidia.ko is called.
// It relies on this: its call of uvm_global_init is the first thing that the load does, and nvidia.ko is not
// called before.
@@
@@
-uvm_global_init()
+uvm_fault_isolation_global_init()
