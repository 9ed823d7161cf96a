// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm.c: nothing has gone down yet.
// It relies on this: nothing after it can fail; nothing before it has gone.
@@
@@
 uvm_exit(...)
 {
 <...
+uvm_fault_isolation_exit();
 uvm_tools_exit();
 ...>
 }
