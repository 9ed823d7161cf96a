// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm.c: the last descriptor of the VA space goes.
@@
symbol filp, va_space;
@@
 int uvm_release(...)
 {
 <...
 filp->private_data = NULL;
 filp->f_mapping = NULL;
+
+if (uvm_fault_isolation_defer_va_space_destroy(va_space))
+    return 0;
 ...>
 }

@@
symbol filp, va_space;
@@
 void uvm_release_va_space(...)
 {
 <...
 filp->private_data = NULL;
 filp->f_mapping = NULL;
+
+if (uvm_fault_isolation_defer_va_space_destroy(va_space))
+    return;
 ...>
 }
