// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm.c: everything is up, and nothing after this can fail.
// It relies on this: nothing after it can fail; nothing before it has gone.
@@
identifier ret;
@@
 uvm_init(...)
 {
 <...
 ret = uvm_tools_init(...);
 if (ret != 0) { ... }
+
+uvm_fault_isolation_init();
 ...>
 }
